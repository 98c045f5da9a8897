"""From the requests of a class, or a published distribution of its lengths, to its workload.

Inputs: a ``RequestTrace`` or a ``Published`` distribution, and the options of the fit. Output: a
``ClassWorkload``. No I/O, no clock; the only randomness is the seeded resampling of
``kvplan_solver.radius``.
"""

from dataclasses import dataclass, replace

import numpy as np

from kvplan_operator.model.arrivals import Arrivals, measure_arrivals, window_edges
from kvplan_operator.model.lengths import MAX_POINTS, LengthSamples, compact_lengths
from kvplan_operator.model.prefixes import (
    SHARED_BY,
    KeyRates,
    SharedPrefix,
    key_rates,
    keyed_by_blocks,
    shared_prefix,
)
from kvplan_operator.model.trace import Floats, RequestTrace
from kvplan_operator.model.workload import ClassWorkload, PromptLengths, Published
from kvplan_solver.errors import InvalidInput
from kvplan_solver.radius import RadiusEstimate, suggested_radius

MAX_WINDOWS = 10_000
"""Most time windows of one fit."""
_MEAN_TOLERANCE = 0.01  # relative distance from which samples and a published mean are said to differ


@dataclass(frozen=True)
class FitOptions:
    """How a workload is fitted.

    Attributes:
        windows: equal time windows for rates, burstiness and drift.
        seed: of the bootstrap.
        max_points: output-length samples kept.
        shared_by: fraction of the requests that must have a block for it to be the class's shared prefix.
        key_blocks: leading blocks that make a key where the trace names none; None means the shared prefix
            and one block more.
        requests_per_second: a stated rate; beats the measured one, and is Poisson where none was measured.
        max_output_tokens: a stated Lmax; lengths above it are clipped and counted.
    """

    windows: int = 8
    seed: int = 0
    max_points: int = MAX_POINTS
    shared_by: float = SHARED_BY
    key_blocks: int | None = None
    requests_per_second: float | None = None
    max_output_tokens: int | None = None

    def __post_init__(self) -> None:
        _require(1 <= self.windows <= MAX_WINDOWS, "windows", self.windows, f"use 1 to {MAX_WINDOWS} windows")
        _require(self.seed >= 0, "seed", self.seed, "use 0 or more")
        _require(0 < self.shared_by <= 1, "shared_by", self.shared_by, "use a fraction above 0, up to 1")
        depth = self.key_blocks
        _require(depth is None or depth >= 1, "key_blocks", depth, "use 1 or more blocks")
        rate = self.requests_per_second
        _require(
            rate is None or (np.isfinite(rate) and rate > 0),
            "requests_per_second",
            rate,
            "use a rate above 0",
        )
        limit = self.max_output_tokens
        _require(limit is None or limit >= 1, "max_output_tokens", limit, "use 1 or more tokens")


def fit_trace(trace: RequestTrace, options: FitOptions) -> ClassWorkload:
    """The workload behind one class's requests.

    Raises:
        InvalidInput: the trace holds something no estimate can use (named with field and remedy).
    """
    lengths, limit, clipped = _clipped(trace.output_tokens, options.max_output_tokens)
    arrivals = _measured(trace, options.windows)
    rate = options.requests_per_second or (arrivals.requests_per_second if arrivals else None)
    prefix = _prefix(trace, options)
    kept = compact_lengths(lengths, options.max_points)
    return ClassWorkload(
        name=trace.name,
        sample_count=trace.count,
        output_lengths=kept,
        output_mean=float(lengths.mean()),
        max_output_tokens=limit,
        radius=suggested_radius(_length_windows(lengths, trace, arrivals, options.windows), options.seed),
        requests_per_second=rate,
        arrival_scv=_planning_scv(arrivals, rate),
        arrivals=arrivals,
        prompt=_prompt(trace.prompt_tokens),
        prefix=prefix,
        keys=_keys(trace, prefix, rate, options),
        notes=_notes(arrivals, options, clipped, kept),
        max_output_stated=options.max_output_tokens is not None,
    )


def fit_distribution(name: str, source: Published, options: FitOptions) -> ClassWorkload:
    """The workload behind a published distribution: its resolution stands in for the noise, drift is unknown.

    Args:
        name: the class.
        source: the distribution.
        options: the fit; the rate must be stated there if there is to be one.
    """
    stated = options.max_output_tokens or source.output_maximum
    lengths, limit, clipped = _clipped(source.output.samples, stated)
    kept = compact_lengths(lengths, options.max_points)
    rate = options.requests_per_second
    error, mean = source.output.error_tokens, source.output_mean
    notes = [f"{source.output.note}: up to {error:.3g} tokens away in W1, and drift is unknown"]
    if abs(mean - lengths.mean()) > _MEAN_TOLERANCE * mean:
        notes.append(f"the published mean is {mean:.4g} tokens, that of the samples {lengths.mean():.4g}")
    return ClassWorkload(
        name=name,
        sample_count=0,
        output_lengths=LengthSamples(kept.samples, error + kept.error_tokens, source.output.note),
        output_mean=mean,
        max_output_tokens=limit,
        radius=RadiusEstimate(error, 0.0, (), float(lengths.mean())),
        requests_per_second=rate,
        arrival_scv=_planning_scv(None, rate),
        prompt=source.prompt,
        notes=(*notes, *_notes(None, options, clipped, kept)),
        max_output_stated=options.max_output_tokens is not None,
    )


def _require(condition: bool, field: str, value: object, remedy: str) -> None:
    if not condition:
        raise InvalidInput("fit", field, value, remedy)


def _clipped(lengths: Floats, stated_limit: int | None) -> tuple[Floats, int, int]:
    """Lengths within Lmax, Lmax itself (at least one token), and how many were clipped."""
    limit = stated_limit or max(1, int(np.ceil(lengths.max())))
    return np.minimum(lengths, limit), limit, int(np.count_nonzero(lengths > limit))


def _measured(trace: RequestTrace, windows: int) -> Arrivals | None:
    return None if trace.arrival_seconds is None else measure_arrivals(trace.arrival_seconds, windows)


def _length_windows(lengths: Floats, trace: RequestTrace, arrivals: Arrivals | None, windows: int) -> list[Floats]:
    """Output lengths per time window; one window when there is no time to cut by."""
    if arrivals is None or trace.arrival_seconds is None:
        return [lengths]
    return np.split(lengths, window_edges(trace.arrival_seconds, arrivals.window_seconds, windows))


def _planning_scv(arrivals: Arrivals | None, rate: float | None) -> float | None:
    if arrivals is None:
        return None if rate is None else 1.0
    return arrivals.scv if arrivals.window_scv_median is None else arrivals.window_scv_median


def _prompt(prompt_tokens: Floats | None) -> PromptLengths | None:
    if prompt_tokens is None:
        return None
    p95 = float(np.quantile(prompt_tokens, 0.95, method="inverted_cdf"))
    return PromptLengths(float(prompt_tokens.mean()), int(np.ceil(p95)), int(np.ceil(prompt_tokens.max())))


def _prefix(trace: RequestTrace, options: FitOptions) -> SharedPrefix | None:
    """Lpre, never more than the mean prompt: the last block of a short prompt is partly empty."""
    if trace.blocks is None:
        return None
    found = shared_prefix(trace.blocks, options.shared_by)
    if trace.prompt_tokens is None:
        return found
    return replace(found, tokens=min(found.tokens, int(trace.prompt_tokens.mean())))


def _keys(trace: RequestTrace, prefix: SharedPrefix | None, rate: float | None, options: FitOptions) -> KeyRates | None:
    if rate is None:
        return None
    keyed = trace
    if trace.keys is None and trace.blocks is not None and prefix is not None:
        depth = options.key_blocks or prefix.blocks + 1
        keyed = keyed_by_blocks(trace, depth)
    return key_rates(keyed, trace.count / rate)


def _notes(arrivals: Arrivals | None, options: FitOptions, clipped: int, kept: LengthSamples) -> tuple[str, ...]:
    notes = []
    if arrivals is None and options.requests_per_second is None:
        notes.append("no arrival times and no stated rate: the rate stays unknown")
    elif arrivals is None:
        notes.append(f"arrivals are stated, not measured: Poisson at {options.requests_per_second:g} per second")
    elif options.requests_per_second is not None:
        measured = arrivals.requests_per_second
        notes.append(f"the stated rate replaces the measured {measured:.4g} per second")
    if arrivals is not None and arrivals.note:
        notes.append(arrivals.note)
    if clipped:
        notes.append(f"{clipped} lengths above the stated maximum were clipped to it")
    if kept.error_tokens:
        notes.append(f"{kept.note}, {kept.error_tokens:.3g} tokens away in W1")
    return tuple(notes)
