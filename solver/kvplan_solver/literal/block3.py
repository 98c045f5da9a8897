"""Block 3 of Algorithm 1: z ← argmin over Z of Obj(z, r, π, δ), by enumeration.

Z holds every z ∈ ℤ₊ᴷ with Σ z·τ·p ≤ J. As r and π are fixed, only those z are admitted for which they stay
feasible: no group of a configuration in use may vanish, and none that is added is used before the next
Block 1. W_k depends on z_k alone, so the whole of Z is priced from one small table per configuration.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kvplan_solver.cost import standing_cost
from kvplan_solver.errors import EnumerationTooLarge
from kvplan_solver.instance import Floats, Instance
from kvplan_solver.literal.decision import Decision, Problem
from kvplan_solver.memory import effective_tokens
from kvplan_solver.packing import fits
from kvplan_solver.queueing import waiting_seconds

LIMIT = 2_000_000
"""Members of Z beyond which the method refuses."""

_CHUNK = 1 << 16

Partitions = NDArray[np.int16]


def count_partitions(instance: Instance) -> int:
    """|Z|, exactly, without listing it."""
    ways = [1] + [0] * instance.gpu_budget
    for k in instance.configurations:
        for used in range(k.gpus, len(ways)):
            ways[used] += ways[used - k.gpus]
    return sum(ways)


def enumerate_partitions(instance: Instance, limit: int = LIMIT) -> Partitions:
    """All of Z, shape (|Z|, K), in lexicographic order.

    Raises:
        EnumerationTooLarge: |Z| exceeds ``limit``.
    """
    size = count_partitions(instance)
    if size > limit:
        raise EnumerationTooLarge(
            f"the literal method would enumerate {size:,} partitions of {instance.gpu_budget} GPUs over "
            f"{len(instance.configurations)} configurations, more than {limit:,}: "
            "use the certified method, or fewer configurations or GPUs"
        )
    found, used = np.zeros((1, 0), dtype=np.int16), np.zeros(1, dtype=np.int64)
    for k in instance.configurations:
        more = (instance.gpu_budget - used) // k.gpus + 1
        parent = np.repeat(np.arange(len(used)), more)
        own = np.arange(len(parent)) - np.repeat(np.cumsum(more) - more, more)
        found = np.column_stack((found[parent], own.astype(np.int16)))
        used = used[parent] + own * k.gpus
    return found


def choose_partition(problem: Problem, partitions: Partitions, at: Decision) -> Decision:
    """The cheapest admissible z at the old (r, π, δ); ties go to fewer GPUs, then to fewer changes."""
    for groups in _cheapest_first(problem, partitions, at):
        if groups == at.groups:
            return at
        if fits(problem.instance, groups):
            candidate = problem.priced(replace(at, groups=groups))
            if problem.feasible(candidate) and candidate.objective <= at.objective:
                return candidate
    return at


@dataclass(frozen=True, eq=False)
class _Tables:
    """Per configuration and number of groups n, shape (J+1, K): what z_k = n means."""

    admissible: NDArray[np.bool_]
    waiting: Floats
    standing: Floats


def _cheapest_first(problem: Problem, partitions: Partitions, at: Decision) -> Iterator[tuple[int, ...]]:
    tables, gpus = _tables(problem, at), problem.constants.gpus
    admitted = partitions[_admissible(tables, partitions) & (partitions @ gpus >= problem.instance.min_gpus)]
    # Rounded, so that z that differ only in groups nobody uses are ties and not float dust.
    cost = np.round(_objectives(problem, tables, admitted, at) / max(1.0, abs(at.objective)), 10)
    changes = np.abs(admitted - np.array(at.groups)).sum(axis=1)
    order = np.lexsort((changes, admitted @ gpus, cost))
    return (tuple(int(n) for n in admitted[row]) for row in order)


def _tables(problem: Problem, at: Decision) -> _Tables:
    numbers = np.arange(problem.instance.gpu_budget + 1, dtype=np.float64)
    k, rates = problem.constants, problem.rates(at)
    count = at.routing.shape[1]
    load = (rates * k.T).sum(axis=0)
    held = problem.in_flight(replace(at, groups=(1,) * count)) * effective_tokens(
        problem.instance, at.reservation, at.cached
    )
    memory = (1 + problem.instance.headroom) * held.sum(axis=0)
    room = numbers[:, None]
    fits_queue = load <= room * k.slots * problem.instance.max_utilisation * (1 + 1e-9)
    fits_memory = memory <= room * problem.memory_left(at.cached) * (1 + 1e-9)
    unused = at.routing.sum(axis=0) <= 0
    waiting = [waiting_seconds(rates, k.T, np.full(count, n), k.slots, k.v) for n in numbers]
    return _Tables(
        admissible=np.asarray((fits_queue & fits_memory & (room > 0)) | unused),
        waiting=np.where(np.isfinite(waiting), waiting, 0.0),
        standing=_standing_table(problem.instance, len(numbers)),
    )


def _standing_table(instance: Instance, numbers: int) -> Floats:
    """Price of n groups of k alone over none, cost per second; a partition's is their sum, bar a constant."""
    unit = np.eye(len(instance.configurations))
    none = standing_cost(instance, 0 * unit[0])
    return np.array([[standing_cost(instance, n * row) - none for row in unit] for n in range(numbers)])


def _admissible(tables: _Tables, partitions: Partitions) -> NDArray[np.bool_]:
    """Which members of Z keep (r, π) feasible, node fit aside."""
    columns = np.arange(partitions.shape[1])
    chunks = np.array_split(partitions, len(partitions) // _CHUNK + 1)
    return np.concatenate([tables.admissible[chunk, columns].all(axis=1) for chunk in chunks])


def _objectives(problem: Problem, tables: _Tables, partitions: Partitions, at: Decision) -> Floats:
    """The part of (6a) that depends on z, cost per second, one per member."""
    k, columns = problem.constants, np.arange(partitions.shape[1])
    fixed = (at.routing * (k.T - k.slo[:, None])).sum(axis=1)
    weight = k.rates * k.latency_weight
    costs = []
    for chunk in np.array_split(partitions, len(partitions) // _CHUNK + 1):
        late = tables.waiting[chunk, columns] @ at.routing.T + fixed
        costs.append(late.clip(0.0) @ weight + tables.standing[chunk, columns].sum(axis=1))
    return np.concatenate(costs)
