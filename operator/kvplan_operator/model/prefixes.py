"""What prompts share: the prefix of a class (Lpre) and the keys with their rates and reusable tokens.

Inputs: a ``RequestTrace`` with prefix blocks or keys. Outputs: tokens and requests per second. No I/O.

Two prompts share exactly the blocks of their common leading ids. Ids need not be chained: the share of a
block is counted among the requests that already share everything before it.
"""

from dataclasses import dataclass, replace

import numpy as np

from kvplan_operator.model.trace import Floats, Ints, PrefixBlocks, RequestTrace

SHARED_BY = 0.9
"""Share of the requests that must have a block for it to count as shared by the class."""


@dataclass(frozen=True)
class SharedPrefix:
    """The leading tokens that (nearly) all prompts of a class have in common.

    Attributes:
        blocks: how many leading blocks that is.
        tokens: Lpre; a whole number of blocks unless prompts are shorter than their last block.
        covered: fraction of the requests that have all of it.
        required: the fraction that was asked for.
    """

    blocks: int
    tokens: int
    covered: float
    required: float = SHARED_BY


@dataclass(frozen=True, eq=False)
class KeyRates:
    """Rates per key, by descending count and then ascending name.

    Attributes:
        names: the keys.
        requests_per_second: λ_b, shape (keys,).
        error_per_second: one Poisson standard deviation, √count over the window, shape (keys,).
        reusable_tokens: mean leading tokens that a request shares with the one before it of the same key;
            for a key seen once, the blocks that the key itself stands for. None without blocks.
        keyless_requests: requests without a key (the cold tail).
    """

    names: tuple[str, ...]
    requests_per_second: Floats
    error_per_second: Floats
    reusable_tokens: Floats | None
    keyless_requests: int


def shared_prefix(blocks: PrefixBlocks, required: float = SHARED_BY) -> SharedPrefix:
    """The longest run of leading blocks that at least ``required`` of all requests have in common."""
    rows, total = np.arange(len(blocks.lengths), dtype=np.int64), len(blocks.lengths)
    depth, covered = 0, 1.0
    while True:
        followers = _followers_of_the_commonest(blocks, rows, depth)
        if not len(followers) or len(followers) < required * total:
            return SharedPrefix(depth, depth * blocks.block_tokens, covered, required)
        rows, depth, covered = followers, depth + 1, len(followers) / total


def _followers_of_the_commonest(blocks: PrefixBlocks, rows: Ints, depth: int) -> Ints:
    """The rows that have the most frequent id at this depth; the smallest id wins a tie."""
    deep = rows[blocks.lengths[rows] > depth]
    if not len(deep):
        return deep
    ids = blocks.at_depth(deep, depth)
    values, counts = np.unique(ids, return_counts=True)
    return np.asarray(deep[ids == values[np.argmax(counts)]])


def keyed_by_blocks(trace: RequestTrace, depth: int) -> RequestTrace:
    """The trace with its first ``depth`` blocks as key; shorter prompts get none and join the cold tail."""
    if trace.blocks is None:
        return trace
    codes, names = _leading_groups(trace.blocks, depth)
    return replace(trace, keys=codes, key_names=names, key_blocks=depth)


def _leading_groups(blocks: PrefixBlocks, depth: int) -> tuple[Ints, tuple[str, ...]]:
    codes = np.full(len(blocks.lengths), -1, dtype=np.int64)
    rows = np.flatnonzero(blocks.lengths >= depth)
    if not len(rows):
        return codes, ()
    leading = np.stack([blocks.at_depth(rows, d) for d in range(depth)], axis=1)
    distinct, inverse = np.unique(leading, axis=0, return_inverse=True)
    codes[rows] = inverse.reshape(-1)
    return codes, tuple("-".join(map(str, row)) for row in distinct.tolist())


def key_rates(trace: RequestTrace, window_seconds: float) -> KeyRates | None:
    """Rate, error and reusable tokens of every key seen in the trace; None when it has no keys."""
    if trace.keys is None:
        return None
    counts = np.bincount(trace.keys[trace.keys >= 0], minlength=len(trace.key_names))
    names = np.array(trace.key_names, dtype=np.str_)
    order = np.lexsort((names, -counts))
    order = order[counts[order] > 0]
    reusable = None
    if trace.blocks is not None:
        reusable = _reusable_blocks(trace.blocks, trace.keys, counts, trace.key_blocks) * trace.blocks.block_tokens
    return KeyRates(
        names=tuple(names[order].tolist()),
        requests_per_second=counts[order] / window_seconds,
        error_per_second=np.sqrt(counts[order]) / window_seconds,
        reusable_tokens=None if reusable is None else reusable[order],
        keyless_requests=int(np.count_nonzero(trace.keys < 0)),
    )


def _reusable_blocks(blocks: PrefixBlocks, keys: Ints, counts: Ints, at_least: int) -> Floats:
    """Mean common leading blocks of successive requests of a key, shape (keys,)."""
    rows = np.argsort(keys, kind="stable")  # successive requests of one key become neighbours, in time order
    rows = rows[keys[rows] >= 0]
    same_key = keys[rows[1:]] == keys[rows[:-1]]
    before, after = rows[:-1][same_key], rows[1:][same_key]
    common = _common_blocks(blocks, before, after)
    total = np.bincount(keys[after], weights=common, minlength=len(counts))
    pairs = np.maximum(counts - 1, 0)
    mean = np.full(len(counts), float(at_least))
    return np.asarray(np.divide(total, pairs, out=mean, where=pairs > 0))


def _common_blocks(blocks: PrefixBlocks, first: Ints, second: Ints) -> Ints:
    """Number of common leading blocks of each pair of requests."""
    common = np.zeros(len(first), dtype=np.int64)
    shorter = np.minimum(blocks.lengths[first], blocks.lengths[second])
    alive, depth = np.flatnonzero(shorter > 0), 0
    while len(alive):
        equal = blocks.at_depth(first[alive], depth) == blocks.at_depth(second[alive], depth)
        alive, depth = alive[equal], depth + 1
        common[alive] = depth
        alive = alive[shorter[alive] > depth]
    return common
