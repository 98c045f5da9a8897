"""What one class asks of the fleet: the frozen result of a fit.

Pure values: rate, burstiness, lengths, shared prefix, keys, drift and the suggested ε of a class. How they
are estimated is in ``fitting``.
"""

from dataclasses import dataclass

from kvplan_operator.model.arrivals import Arrivals
from kvplan_operator.model.lengths import LengthSamples
from kvplan_operator.model.prefixes import KeyRates, SharedPrefix
from kvplan_solver.radius import RadiusEstimate


@dataclass(frozen=True)
class PromptLengths:
    """Prompt tokens of a class: the mean is used in T, P95 in r and (6e), the maximum in max-model-len."""

    mean: float
    p95: int
    maximum: int


@dataclass(frozen=True, eq=False)
class Published:
    """A published distribution of lengths, without the requests behind it.

    Attributes:
        output: output-length samples, their error bound and where it comes from.
        output_mean: published mean, or that of the samples, tokens.
        output_maximum: longest output, tokens.
        prompt: prompt lengths, None when the source has none.
    """

    output: LengthSamples
    output_mean: float
    output_maximum: int
    prompt: PromptLengths | None = None


@dataclass(frozen=True, eq=False)
class ClassWorkload:
    """The workload of one class.

    Attributes:
        name: the class.
        sample_count: requests behind the figures; 0 for a published distribution.
        output_lengths: equal-weight samples, tokens, and their distance to the source.
        output_mean: mean of the source, tokens.
        max_output_tokens: Lmax, stated or the longest seen.
        max_output_stated: whether a person stated it.
        radius: the suggested ε, its noise and drift.
        requests_per_second: λ, None when neither measured nor stated.
        arrival_scv: Ca² to plan with: the median of the windows' where measured, 1 for a stated rate alone.
        arrivals: the measurement behind both, None without arrival times.
        prompt: prompt lengths, None when the source has none.
        prefix: the shared prefix, None without blocks.
        keys: rates per key, None without keys or without a rate.
        notes: what a reader must know about the figures.
    """

    name: str
    sample_count: int
    output_lengths: LengthSamples
    output_mean: float
    max_output_tokens: int
    radius: RadiusEstimate
    requests_per_second: float | None = None
    arrival_scv: float | None = None
    arrivals: Arrivals | None = None
    prompt: PromptLengths | None = None
    prefix: SharedPrefix | None = None
    keys: KeyRates | None = None
    notes: tuple[str, ...] = ()
    max_output_stated: bool = False

    @property
    def window_seconds(self) -> float | None:
        """Length of the observation (of as many requests at the stated rate), None without a rate."""
        rate = self.requests_per_second
        return None if rate is None or not self.sample_count else self.sample_count / rate
