"""What was measured of a class, whoever measured it: a trace, a ConfigMap, later the fleet's Prometheus.

Inputs: fitted workloads, or RequestClasses with the ConfigMaps they refer to. Outputs: ``ClassFacts`` by
class name. Absent is None and never 0: the planner asks for what it needs and names the remedy. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from kvplan_operator.api.request_class import ConfigMapKeyRef, RequestClass
from kvplan_operator.model.fit_manifests import RADIUS_ANNOTATION, object_name
from kvplan_operator.model.lengths import lengths_from_quantiles
from kvplan_operator.model.pods import part
from kvplan_operator.model.trace import Floats
from kvplan_operator.model.workload import ClassWorkload
from kvplan_solver.errors import Finding, InvalidInput
from kvplan_solver.units import from_milli

_LINES = "write one length in tokens per line, or 'probabilityMilli tokens' per line, ascending"


@dataclass(frozen=True, eq=False)
class ClassFacts:
    """Measurements of one class; None is unknown.

    Attributes:
        requests_per_second: λ.
        arrival_scv: Ca², squared coefficient of variation of the times between arrivals.
        output_lengths: equally weighted samples, tokens, any order, shape (n,).
        prompt_mean: mean prompt, tokens.
        prompt_p95: prompt that 95 of 100 requests stay within, tokens.
        prompt_max: longest prompt, tokens.
        shared_prefix_tokens: Lpre, tokens.
        suggested_radius_tokens: ε from sampling noise and drift, tokens.
    """

    requests_per_second: float | None = None
    arrival_scv: float | None = None
    output_lengths: Floats | None = None
    prompt_mean: float | None = None
    prompt_p95: int | None = None
    prompt_max: int | None = None
    shared_prefix_tokens: int | None = None
    suggested_radius_tokens: float | None = None

    def completed_by(self, other: "ClassFacts") -> "ClassFacts":
        """These facts, with what is unknown here taken from the other."""
        known = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        return replace(other, **known)


def facts_from_workloads(workloads: Iterable[ClassWorkload]) -> dict[str, ClassFacts]:
    """Facts by class name (as a Kubernetes name) from fitted traces or published distributions."""
    return {object_name(workload.name): _from_workload(workload) for workload in workloads}


def _from_workload(workload: ClassWorkload) -> ClassFacts:
    prompt, prefix = workload.prompt, workload.prefix
    return ClassFacts(
        requests_per_second=workload.requests_per_second,
        arrival_scv=workload.arrival_scv,
        output_lengths=workload.output_lengths.samples,
        prompt_mean=prompt.mean if prompt else None,
        prompt_p95=prompt.p95 if prompt else None,
        prompt_max=prompt.maximum if prompt else None,
        shared_prefix_tokens=prefix.tokens if prefix else None,
        suggested_radius_tokens=workload.radius.tokens,
    )


def facts_from_config_maps(
    classes: Sequence[RequestClass], config_maps: Sequence[Mapping[str, Any]]
) -> dict[str, ClassFacts]:
    """Output lengths by class name from the ConfigMaps that ``outputLengths.configMapRef`` names.

    The suggested radius that a fit left on the class comes along. A class whose ConfigMap is not among the
    given ones gets no entry: the planner says so if nothing else knows its lengths.

    Raises:
        InvalidInput: the key is missing, or a line holds no length.
    """
    known = {_identity(config_map): config_map for config_map in config_maps}
    facts = {}
    for request_class in classes:
        reference = request_class.spec.output_lengths.config_map_ref
        identity = (request_class.metadata.namespace, reference.name if reference else "")
        if reference is not None and identity in known:
            facts[request_class.metadata.name] = ClassFacts(
                output_lengths=_read(known[identity], reference),
                suggested_radius_tokens=_suggested_radius(request_class),
            )
    return facts


def _identity(config_map: Mapping[str, Any]) -> tuple[str, str]:
    metadata = part(config_map, "metadata")
    return str(metadata.get("namespace", "default")), str(metadata.get("name", ""))


def _read(config_map: Mapping[str, Any], reference: ConfigMapKeyRef) -> Floats:
    subject, data = f"ConfigMap {reference.name}", part(config_map, "data")
    if reference.key not in data:
        found = ", ".join(sorted(data)) or "none"
        raise InvalidInput(subject, "data", reference.key, f"add this key; the keys there are {found}")
    rows = [(n, line.split()) for n, line in enumerate(str(data[reference.key]).splitlines(), 1) if line.strip()]
    field = f"data[{reference.key}]"
    numbers = [_numbers(subject, f"{field} line {n}", words) for n, words in rows]
    widths = {len(row) for row in numbers}
    if widths not in ({1}, {2}):
        raise InvalidInput(subject, field, Finding(f"holds {len(numbers)} lines"), _LINES)
    if widths == {1}:
        return np.array([row[0] for row in numbers])
    return lengths_from_quantiles([from_milli(int(p)) for p, _ in numbers], [v for _, v in numbers]).samples


def _numbers(subject: str, field: str, words: Sequence[str]) -> list[float]:
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = [-1.0]
    if not all(np.isfinite(number) and number >= 0 for number in numbers):
        raise InvalidInput(subject, field, " ".join(words), _LINES)
    return numbers


def _suggested_radius(request_class: RequestClass) -> float | None:
    text = request_class.metadata.annotations.get(RADIUS_ANNOTATION)
    if text is None:
        return None
    if not text.isdecimal():
        subject = f"RequestClass {request_class.metadata.name}"
        raise InvalidInput(subject, f"annotation {RADIUS_ANNOTATION}", text, "write whole tokens")
    return float(text)
