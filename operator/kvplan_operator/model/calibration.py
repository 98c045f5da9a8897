"""Speeds and KV capacity of a configuration, as its engines report them.

Inputs: sums over a window per engine pod, rows of ``vllm:cache_config_info``. Output: a ``Measurement`` in which None
is what too little was seen of; the prior then stands. Pure.

Equation (1), T = α·Lin·p/C + β·E[ξ]/B + …: prefill seconds per token = Σ request_prefill_time / Σ prompt tokens that
were computed (cached ones cost nothing); decode seconds per token = Σ inter_token_latency / Σ gaps between tokens. Both
hold at the batch that ran, the mean of num_requests_running while it was not 0. M = (num_gpu_blocks − 1)·block_size,
because an engine keeps one block for itself; ``kv_cache_size_tokens`` ignores that block and is not used.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kvplan_operator.model.fleet_queries import EnginePart
from kvplan_operator.model.priors.resolve import Measurement
from kvplan_operator.model.promql import PART
from kvplan_operator.model.series import Series

LEAST_PREFILLS = 30
"""Finished requests below which prefill speed is not told: one long prompt would decide it."""
LEAST_PREFILL_TOKENS = 2_000
"""Computed prompt tokens below which fixed costs per request hide the cost per token."""
LEAST_TOKEN_GAPS = 1_000
"""Gaps between output tokens below which decode speed is not told."""


@dataclass(frozen=True)
class EngineSums:
    """Sums of several engines over one window; 0 where nothing was reported.

    Attributes:
        totals: by ``EnginePart``: requests, seconds or tokens.
    """

    totals: Mapping[str, float]

    def __getitem__(self, part: EnginePart) -> float:
        """One sum."""
        return self.totals.get(part, 0.0)

    @property
    def prefill_seconds_per_token(self) -> float | None:
        """α·p/C; None with too few prompts."""
        enough = self[EnginePart.PREFILLS] >= LEAST_PREFILLS
        enough = enough and self[EnginePart.PREFILL_TOKENS] >= LEAST_PREFILL_TOKENS
        return _ratio(self[EnginePart.PREFILL_SECONDS], self[EnginePart.PREFILL_TOKENS]) if enough else None

    @property
    def decode_seconds_per_token(self) -> float | None:
        """β/B at the batch that ran; None with too few tokens."""
        enough = self[EnginePart.TOKEN_GAPS] >= LEAST_TOKEN_GAPS
        return _ratio(self[EnginePart.TOKEN_SECONDS], self[EnginePart.TOKEN_GAPS]) if enough else None

    @property
    def first_token_seconds(self) -> float | None:
        """Mean time to the first token; None where no request got one."""
        return _ratio(self[EnginePart.FIRST_TOKEN_SECONDS], self[EnginePart.FIRST_TOKENS])


def engine_sums(series: Iterable[Series], pods: Sequence[str]) -> EngineSums:
    """The sums of some pods."""
    wanted, totals = set(pods), dict[str, float]()
    for one in series:
        if one.labels.get("pod") in wanted:
            part = one.labels.get(PART, "")
            totals[part] = totals.get(part, 0.0) + one.value
    return EngineSums(totals)


def capacity_tokens(blocks: str, block_size: str) -> int | None:
    """M of one engine from the labels of ``vllm:cache_config_info``; None before the engine knows its blocks."""
    if not (blocks.isdecimal() and block_size.isdecimal()):
        return None
    usable = (int(blocks) - 1) * int(block_size)
    return usable if usable > 0 else None


def least_capacity(series: Iterable[Series], pods: Sequence[str]) -> int | None:
    """M_k of a configuration: the least of its engines, because a plan must fit each of them."""
    wanted = set(pods)
    labels = (one.labels for one in series if one.labels.get("pod") in wanted)
    found = (capacity_tokens(each.get("num_gpu_blocks", ""), each.get("block_size", "")) for each in labels)
    return min((tokens for tokens in found if tokens is not None), default=None)


def mean_batch(series: Iterable[Series], pods: Sequence[str]) -> float | None:
    """Sequences that ran in a group while any did, averaged over its engines; None where none ever ran.

    A mean over time: sequences themselves meet larger batches more often, so the speeds are, if anything, put down to
    too small a batch and larger ones look slower than they are.
    """
    wanted = set(pods)
    running = [max(1.0, one.value) for one in series if one.labels.get("pod") in wanted]
    return sum(running) / len(running) if running else None


def measurement(sums: EngineSums, capacity: int | None, batch: float | None) -> Measurement:
    """What a configuration was seen to do; the batch only beside a speed."""
    prefill, decode = sums.prefill_seconds_per_token, sums.decode_seconds_per_token
    return Measurement(capacity, prefill, decode, None if prefill is None and decode is None else batch)


def completed(new: Measurement, before: Measurement | None) -> Measurement:
    """The new measurement, with what it lacks taken from the one before: an idle hour makes no engine slower."""
    if before is None:
        return new
    known = {name: value for name, value in vars(new).items() if value is not None}
    if new.decode_seconds_per_token is None:
        known.pop("batch", None)  # the decode speed of before holds at the batch of before
    return replace(before, **known)


def without(measured: Measurement, *, kv_capacity: bool, prefill: bool, decode: bool) -> Measurement:
    """The measurement without what a person stated instead."""
    return Measurement(
        None if kv_capacity else measured.kv_capacity_tokens,
        None if prefill else measured.prefill_seconds_per_token,
        None if decode else measured.decode_seconds_per_token,
        None if prefill and decode else measured.batch,
    )


def _ratio(total: float, count: float) -> float | None:
    return total / count if count > 0 and total > 0 else None
