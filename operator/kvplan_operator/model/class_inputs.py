"""One RequestClass as the solver takes it: what the spec says, completed by what was measured.

Inputs: the class, the fleet's objective and uncertainty, ``ClassFacts``. Outputs: a ``ClassInput``, the
source of each of its numbers, and warnings. A number in the spec beats a measured one (01-api); what
neither knows is an error that names the field and the remedy. Pure.
"""

import math
from dataclasses import dataclass, field

from kvplan_operator.api.common import Quantile
from kvplan_operator.api.fleet import ServingFleetSpec
from kvplan_operator.api.fleet_enums import Ambiguity
from kvplan_operator.api.fleet_planning import Radius
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.model.facts import ClassFacts
from kvplan_operator.model.lengths import lengths_from_quantiles
from kvplan_operator.model.number_source import NumberSource, Origin
from kvplan_operator.model.trace import Floats
from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import ClassInput, clip_samples
from kvplan_solver.radius import bootstrap_noise
from kvplan_solver.units import MILLI, from_milli

_RADIUS_SEED = 0


@dataclass(frozen=True)
class BuiltClass:
    """A class for the solver, where its numbers came from, and what a reader must know about them."""

    input: ClassInput
    sources: tuple[NumberSource, ...]
    warnings: tuple[str, ...]


def build_class(request_class: RequestClass, fleet: ServingFleetSpec, facts: ClassFacts) -> BuiltClass:
    """The solver's view of a class.

    Raises:
        InvalidInput: a number that neither the spec nor a measurement has, or numbers that contradict.
    """
    return _Builder(request_class, fleet, facts).build()


@dataclass
class _Builder:
    """Collects sources and warnings while the numbers are looked up."""

    request_class: RequestClass
    fleet: ServingFleetSpec
    facts: ClassFacts
    sources: list[NumberSource] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def build(self) -> BuiltClass:
        spec, objective = self.request_class.spec, self.fleet.objective
        lengths = self._lengths()
        mean, p95, longest = self._prompt()
        costs = spec.costs
        built = ClassInput(
            name=self.request_class.metadata.name,
            arrival_rate=self._rate(),
            input_tokens_mean=mean,
            input_tokens_p95=p95,
            input_tokens_max=longest,
            shared_prefix_tokens=self._prefix(mean, p95),
            max_output_tokens=spec.tokens.max_output,
            output_lengths=lengths,
            latency_slo_seconds=from_milli(spec.slo.latency_milliseconds),
            preemption_cost=float(costs.preemption_ratio or objective.preemption_cost_ratio),
            waste_cost=1.0,
            latency_weight=_weight(costs.latency_weight, objective.latency_weight),
            rejection_weight=_weight(costs.rejection_weight, objective.rejection_weight),
            radius=self._radius(lengths),
            arrival_scv=self._scv(),
        )
        return BuiltClass(built, tuple(self.sources), tuple(self.warnings))

    @property
    def subject(self) -> str:
        return f"RequestClass {self.request_class.metadata.name}"

    def _note(self, quantity: str, value: float, origin: Origin, detail: str = "") -> None:
        name = f"class {self.request_class.metadata.name}"
        self.sources.append(NumberSource(name, quantity, value, origin, detail))

    def _warn(self, sentence: str) -> None:
        self.warnings.append(f"{self.subject}: {sentence}")

    def _missing(self, path: str, measured: str, remedy: str) -> InvalidInput:
        return InvalidInput(self.subject, path, None, f"{measured}: {remedy}")

    def _pick(self, quantity: str, given: float | None, path: str, measured: float | None) -> float | None:
        """Spec before measurement; notes which one it was."""
        if given is not None:
            self._note(quantity, given, Origin.SPEC, path)
            return given
        if measured is not None:
            self._note(quantity, measured, Origin.MEASUREMENT)
        return measured

    def _rate(self) -> float:
        milli = self.request_class.spec.arrivals.requests_per_second_milli
        given = None if milli is None else from_milli(milli)
        path = "spec.arrivals.requestsPerSecondMilli"
        rate = self._pick("requests per second", given, path, self.facts.requests_per_second)
        if rate is None:
            raise self._missing(path, "no traffic was measured", "set it or give a trace")
        return rate

    def _scv(self) -> float:
        milli = self.request_class.spec.arrivals.interarrival_scv_milli
        given = None if milli is None else from_milli(milli)
        path, quantity = "spec.arrivals.interarrivalScvMilli", "squared variation of arrivals"
        scv = self._pick(quantity, given, path, self.facts.arrival_scv)
        if scv is None:
            self._note(quantity, 1.0, Origin.DEFAULT, "Poisson arrivals")
            return 1.0
        return scv

    def _prompt(self) -> tuple[float, int, int]:
        """Mean, P95 and maximum, never descending; the maximum within the model's context."""
        tokens, facts = self.request_class.spec.tokens, self.facts
        mean = self._pick("mean prompt, tokens", tokens.input, "spec.tokens.input", facts.prompt_mean)
        if mean is None:
            raise self._missing("spec.tokens.input", "no prompts were measured", "set it or give a trace")
        p95 = self._pick("P95 prompt, tokens", tokens.input_p95, "spec.tokens.inputP95", facts.prompt_p95)
        if p95 is None:
            p95 = self._standing_in("P95 prompt, tokens", math.ceil(mean), "the mean stands in for it")
        longest = self._pick("longest prompt, tokens", tokens.input_max, "spec.tokens.inputMax", facts.prompt_max)
        if longest is None:
            longest = self._standing_in("longest prompt, tokens", max(p95, math.ceil(mean)), "P95 stands in for it")
        return self._ordered(mean, int(p95), int(longest))

    def _standing_in(self, quantity: str, value: float, why: str) -> float:
        self._note(quantity, value, Origin.DERIVED, why)
        self._warn(f"the {quantity.removesuffix(', tokens')} is unknown, {why} ({value:g} tokens)")
        return value

    def _ordered(self, mean: float, p95: int, longest: int) -> tuple[float, int, int]:
        if p95 < mean:
            self._warn(f"the P95 prompt of {p95} tokens is below the mean of {mean:g}: check spec.tokens.inputP95")
        highest = max(longest, p95, math.ceil(mean))
        if highest > longest:
            self._warn(f"the longest prompt of {longest} tokens is below its mean or P95: {highest} is used")
        limit = self._context_left()
        if highest <= limit:
            return mean, p95, highest
        if p95 > limit:
            remedy = f"raise model.maxModelLen or lower maxOutput: it leaves {limit} tokens for the prompt"
            raise InvalidInput(self.subject, "spec.tokens.inputP95", p95, remedy)
        self._warn(f"prompts above {limit} tokens exceed model.maxModelLen with maxOutput; engines refuse them")
        return mean, p95, int(limit)

    def _context_left(self) -> float:
        longest = self.fleet.model.max_model_len
        if longest is None:
            return math.inf
        output = self.request_class.spec.tokens.max_output
        if output >= longest:
            remedy = f"use less than model.maxModelLen ({longest}) of the fleet"
            raise InvalidInput(self.subject, "spec.tokens.maxOutput", output, remedy)
        return longest - output

    def _prefix(self, mean: float, p95: int) -> int:
        given, quantity = self.request_class.spec.tokens.shared_prefix, "shared prefix, tokens"
        prefix = self._pick(quantity, given, "spec.tokens.sharedPrefix", self.facts.shared_prefix_tokens)
        if prefix is None:
            self._note(quantity, 0.0, Origin.DEFAULT, "nothing is shared")
            return 0
        if given is not None and given > p95:
            remedy = f"all prompts hold it: use at most the P95 prompt of {p95} tokens, or raise spec.tokens.inputP95"
            raise InvalidInput(self.subject, "spec.tokens.sharedPrefix", given, remedy)
        limit, which = min((mean, "mean"), (float(p95), "P95"))
        if prefix > limit:
            self._warn(f"a shared prefix of {prefix:g} tokens exceeds the {which} prompt: {limit:g} is used")
        return int(min(prefix, limit))

    def _lengths(self) -> Floats:
        """Samples within [0, maxOutput], ascending, tokens."""
        given = self.request_class.spec.output_lengths.quantiles
        samples = self.facts.output_lengths if given is None else self._from_quantiles(given)
        if samples is None or not len(samples):
            raise self._no_lengths()
        clipped, count = clip_samples(samples, self.request_class.spec.tokens.max_output)
        if count:
            self._warn(f"{count} of {len(samples)} output lengths lay outside 0 to maxOutput and were clipped")
        origin = Origin.MEASUREMENT if given is None else Origin.SPEC
        detail = f"{len(clipped)} samples" if given is None else "spec.outputLengths.quantiles"
        self._note("mean output, tokens", float(clipped.mean()), origin, detail)
        return clipped

    def _from_quantiles(self, given: tuple[Quantile, ...]) -> Floats:
        points = {q.probability_milli: q.tokens for q in given}
        if MILLI not in points:
            points[MILLI] = self.request_class.spec.tokens.max_output
            self._warn("its output quantiles have no maximum (probabilityMilli 1000): maxOutput is taken")
        levels = sorted(points)
        values = [points[level] for level in levels]
        return lengths_from_quantiles([from_milli(level) for level in levels], values).samples

    def _no_lengths(self) -> InvalidInput:
        reference = self.request_class.spec.output_lengths.config_map_ref
        if reference is not None:
            field_name = "spec.outputLengths.configMapRef"
            remedy = f"give the ConfigMap {reference.name} with the key {reference.key}, with at least one length"
            return InvalidInput(self.subject, field_name, reference.name, remedy)
        remedy = "set quantiles or configMapRef there, or give a trace"
        return self._missing("spec.outputLengths", "no output lengths were measured", remedy)

    def _radius(self, lengths: Floats) -> float:
        """ε: tokens, or a fraction of the lengths for ``Scale``."""
        wanted, mean = self.fleet.uncertainty.radius, float(lengths.mean())
        scale = self.fleet.uncertainty.ambiguity is Ambiguity.SCALE
        tokens, origin, detail = self._radius_tokens(wanted, lengths)
        radius = (tokens / mean if mean > 0 else 0.0) if scale else tokens
        self._note("radius, fraction of the lengths" if scale else "radius, tokens", radius, origin, detail)
        return radius

    def _radius_tokens(self, wanted: Radius, lengths: Floats) -> tuple[float, Origin, str]:
        if wanted.relative_milli is not None:
            tokens = from_milli(wanted.relative_milli) * float(lengths.mean())
            return tokens, Origin.SPEC, "uncertainty.radius.relativeMilli of the mean output"
        if wanted.tokens is not None:
            return float(wanted.tokens), Origin.SPEC, "uncertainty.radius.tokens"
        if self.facts.suggested_radius_tokens is not None:
            return self.facts.suggested_radius_tokens, Origin.MEASUREMENT, "sampling noise and recent drift"
        self._warn("radius.auto knows no drift of its lengths: the sampling noise alone is used")
        return bootstrap_noise(lengths, _RADIUS_SEED), Origin.DERIVED, "sampling noise alone"


def _weight(own: int | None, fleet: int) -> float:
    return float(fleet if own is None else own)
