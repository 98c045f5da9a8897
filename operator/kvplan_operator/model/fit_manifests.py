"""What a fit leaves behind for the planner: RequestClass and ConfigMap documents, and the key rates.

Inputs: ``ClassWorkload`` values and what no trace can tell (SLO, fleet, namespace). Outputs: plain
Kubernetes documents that the API types accept, and the text of ``keys.csv``. No I/O, no clock: the same
workloads give the same bytes.
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kvplan_operator.api.labels import API_VERSION, FLEET_LABEL
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.model.fitted_limits import fitted_max_input, fitted_max_output, limits_note
from kvplan_operator.model.workload import ClassWorkload
from kvplan_solver.errors import InvalidInput
from kvplan_solver.units import to_milli

CLASS_HEADER = "x-kvplan-class"
"""Header that a fitted class matches on: a trace does not tell how requests will be told apart."""
LENGTHS_KEY = "output-tokens"
"""Key of the ConfigMap; its value holds one length per line, ascending, equally weighted."""
DEFAULT_SLO_MILLISECONDS = 30_000
"""Target of the mean latency where none was stated; a trace does not tell what was promised."""
RADIUS_ANNOTATION = "kvplan.dev/suggested-radius-tokens"
LIMITS_ANNOTATION = "kvplan.dev/fitted-limits"
"""How maxOutput and inputMax came about: a trace shows what was asked, not what may be asked."""
KEY_COLUMNS = ("class", "key", "requestsPerSecond", "errorPerSecond", "reusableTokens")
"""Header of ``keys.csv``; an empty ``reusableTokens`` means unknown, not 0."""

Document = dict[str, object]


@dataclass(frozen=True)
class ManifestOptions:
    """What the documents say that no trace can tell.

    Attributes:
        fleet: value of the fleet label, empty for none.
        namespace: of all documents.
        slo_milliseconds: target of the mean latency per class, milliseconds.
    """

    fleet: str = ""
    namespace: str = "default"
    slo_milliseconds: Mapping[str, int] = field(default_factory=dict)


def fit_manifests(workloads: Sequence[ClassWorkload], options: ManifestOptions) -> list[Document]:
    """A ConfigMap with the output lengths and a RequestClass that refers to it, for every class.

    Raises:
        InvalidInput: two classes share one object name, an SLO names no class, or the API refuses a value.
    """
    _check_names(workloads, options)
    ordered = sorted(workloads, key=lambda workload: workload.name)
    return [document for workload in ordered for document in _documents(workload, options)]


def keys_csv(workloads: Sequence[ClassWorkload]) -> str:
    """Rates per key of all classes, by class and then descending rate; see ``KEY_COLUMNS``."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(KEY_COLUMNS)
    for workload in sorted(workloads, key=lambda workload: workload.name):
        writer.writerows(_key_rows(workload))
    return text.getvalue()


def object_name(class_name: str) -> str:
    """The class name as a Kubernetes name: lower case, everything else than letters and digits a hyphen.

    Raises:
        InvalidInput: nothing is left of it.
    """
    name = re.sub(r"[^a-z0-9]+", "-", class_name.lower()).strip("-")[:63].rstrip("-")
    if not name:
        raise InvalidInput("class", "name", class_name, "use a name with at least one letter or digit")
    return name


def _check_names(workloads: Sequence[ClassWorkload], options: ManifestOptions) -> None:
    names = [object_name(workload.name) for workload in workloads]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput("class", "name", name, "two classes have this object name, rename one of them")
    for stated in sorted(set(options.slo_milliseconds) - {workload.name for workload in workloads}):
        raise InvalidInput("slo", "class", stated, "name a class that was fitted")


def _documents(workload: ClassWorkload, options: ManifestOptions) -> list[Document]:
    lengths: Document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(f"{object_name(workload.name)}-output-lengths", options),
        "data": {LENGTHS_KEY: _lines(workload)},
    }
    return [lengths, _request_class(workload, options)]


def _lines(workload: ClassWorkload) -> str:
    whole = np.round(workload.output_lengths.samples).astype(np.int64).tolist()
    return "".join(f"{tokens}\n" for tokens in whole)


def _request_class(workload: ClassWorkload, options: ManifestOptions) -> Document:
    name = object_name(workload.name)
    metadata = _metadata(name, options)
    annotations = {
        RADIUS_ANNOTATION: str(int(np.ceil(workload.radius.tokens))),
        LIMITS_ANNOTATION: limits_note(workload),
    }
    metadata["annotations"] = {key: text for key, text in annotations.items() if text}
    document: Document = {
        "apiVersion": API_VERSION,
        "kind": "RequestClass",
        "metadata": metadata,
        "spec": {
            "match": {"headers": [{"name": CLASS_HEADER, "exact": name}]},
            "slo": {"latencyMilliseconds": options.slo_milliseconds.get(workload.name, DEFAULT_SLO_MILLISECONDS)},
            "tokens": _tokens(workload),
            "arrivals": _arrivals(workload),
            "outputLengths": {
                "configMapRef": {"name": f"{name}-output-lengths", "key": LENGTHS_KEY},
            },
        },
    }
    _check_against_api(workload.name, document)
    return document


def _tokens(workload: ClassWorkload) -> Document:
    tokens: Document = {"maxOutput": fitted_max_output(workload)}
    if workload.prompt is not None:
        tokens |= {"input": min(round(workload.prompt.mean), workload.prompt.maximum)}
        tokens |= {"inputP95": workload.prompt.p95, "inputMax": fitted_max_input(workload)}
    if workload.prefix is not None:
        tokens |= {"sharedPrefix": workload.prefix.tokens}
    return tokens


def _arrivals(workload: ClassWorkload) -> Document:
    """Absent means measured, so an unknown rate is left out and not written as 0."""
    arrivals: Document = {}
    if workload.requests_per_second is not None:
        arrivals["requestsPerSecondMilli"] = max(1, to_milli(workload.requests_per_second))
    if workload.arrival_scv is not None:
        arrivals["interarrivalScvMilli"] = to_milli(workload.arrival_scv)
    return arrivals


def _metadata(name: str, options: ManifestOptions) -> Document:
    metadata: Document = {"name": name, "namespace": options.namespace}
    if options.fleet:
        metadata["labels"] = {FLEET_LABEL: options.fleet}
    return metadata


def _check_against_api(class_name: str, document: Document) -> None:
    try:
        RequestClass.model_validate(document)
    except ValueError as error:
        raise InvalidInput(f"class {class_name}", "RequestClass", str(error), "mend the named field") from error


def _key_rows(workload: ClassWorkload) -> list[tuple[str, str, str, str, str]]:
    keys = workload.keys
    if keys is None:
        return []
    reusable = [""] * len(keys.names)
    if keys.reusable_tokens is not None:
        reusable = [str(round(tokens)) for tokens in keys.reusable_tokens.tolist()]
    rates, errors = keys.requests_per_second.tolist(), keys.error_per_second.tolist()
    return [
        (object_name(workload.name), key, f"{rate:.6g}", f"{error:.6g}", tokens)
        for key, rate, error, tokens in zip(keys.names, rates, errors, reusable, strict=True)
    ]
