"""Node fit: can these groups be placed, and where (02-solver §5).

A group on one node is one item of τ·p GPUs; a group that may span nodes is p items of τ GPUs (tensor
parallel never crosses a node). When the item sizes divide one another (1, 2, 4, 8 …) and all nodes serve
the same items, the *chunk rows* below are exact: an item of size m·s always takes m chunks of size s from
whatever node holds it. Otherwise they are necessary only, and a small MILP decides.

Groups stay where they run as far as the rest still fits. Pure: reads the instance, returns placements.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kvplan_solver.backends.highs import Indices, LinearProgram, SolveStatus
from kvplan_solver.instance import ConfigurationInput, Floats, GroupPlacement, Instance

Ints = NDArray[np.int64]

_PACKING_NODES = 20_000


@dataclass(frozen=True)
class ChunkRow:
    """A linear row every placeable z obeys: Σ_k weights_k·z_k ≤ limit.

    ``weights`` counts the chunks of ``size`` GPUs in one group of each configuration that only nodes of
    ``gpu_product`` can hold (empty: all nodes); ``limit`` is how many such chunks those nodes have free.
    """

    size: int
    gpu_product: str
    weights: tuple[int, ...]
    limit: int


@lru_cache(maxsize=16)  # asked for every partition tried; instances are compared by identity
def chunk_rows(instance: Instance) -> tuple[ChunkRow, ...]:
    """All chunk rows of the instance, for the solver's master problem and the certificate."""
    return tuple(
        ChunkRow(size, product, _chunk_weights(instance, size, product), _free_chunks(instance, size, product))
        for product in _products(instance)
        for size in sorted({_item(k)[0] for k in instance.configurations})
    )


def most_groups(instance: Instance) -> Ints:
    """Most groups of each configuration that fit alone, length K."""
    rows, gpus = chunk_rows(instance), np.array([k.gpus for k in instance.configurations])
    most = instance.gpu_budget // gpus
    for row in rows:
        weights = np.array(row.weights)
        most = np.where(weights > 0, np.minimum(most, row.limit // np.maximum(weights, 1)), most)
    return np.asarray(most if instance.max_groups is None else np.minimum(most, instance.max_groups), dtype=np.int64)


def place(instance: Instance, groups: Sequence[int]) -> tuple[GroupPlacement, ...] | None:
    """Place z groups on nodes, staying where groups run now as far as possible.

    Args:
        instance: nodes, configurations and running groups.
        groups: z, length K.

    Returns:
        One placement per group, sorted; None when they do not fit (or the GPU limits forbid them).
    """
    if not _within_gpu_limits(instance, groups) or not _obeys_chunk_rows(instance, groups):
        return None
    packer = _Packer(instance, [int(z) for z in groups])
    if not packer.fits():
        return None
    packer.keep_running()
    return tuple(sorted(packer.placements()))


def fits(instance: Instance, groups: Sequence[int]) -> bool:
    """Whether z groups can be placed at all."""
    if not _within_gpu_limits(instance, groups) or not _obeys_chunk_rows(instance, groups):
        return False
    return chunk_rows_are_exact(instance) or _Packer(instance, [int(z) for z in groups]).fits()


def chunk_rows_are_exact(instance: Instance) -> bool:
    """Whether the chunk rows alone decide: sizes divide one another, no item has a choice of product."""
    sizes = sorted({_item(k)[0] for k in instance.configurations})
    divisible = all(b % a == 0 for a, b in pairwise(sizes))
    named = {k.gpu_product for k in instance.configurations}
    return divisible and (named == {""} or "" not in named or len({n.gpu_product for n in instance.nodes}) <= 1)


def _item(k: ConfigurationInput) -> tuple[int, int]:
    """GPUs of one item and items per group."""
    return (k.tensor_parallel, k.pipeline_parallel) if k.spans_nodes else (k.gpus, 1)


def _products(instance: Instance) -> list[str]:
    return ["", *sorted({k.gpu_product for k in instance.configurations} - {""})]


def _chunk_weights(instance: Instance, size: int, product: str) -> tuple[int, ...]:
    def weight(k: ConfigurationInput) -> int:
        item, count = _item(k)
        return item // size * count if product in ("", k.gpu_product) else 0

    return tuple(weight(k) for k in instance.configurations)


def _free_chunks(instance: Instance, size: int, product: str) -> int:
    return sum(n.free_gpus // size for n in instance.nodes if product in ("", n.gpu_product))


def _within_gpu_limits(instance: Instance, groups: Sequence[int]) -> bool:
    used = sum(int(z) * k.gpus for z, k in zip(groups, instance.configurations, strict=True))
    few = instance.max_groups is None or all(z <= instance.max_groups for z in groups)
    return few and instance.min_gpus <= used <= instance.gpu_budget and all(z >= 0 for z in groups)


def _obeys_chunk_rows(instance: Instance, groups: Sequence[int]) -> bool:
    return all(
        sum(w * int(z) for w, z in zip(row.weights, groups, strict=True)) <= row.limit for row in chunk_rows(instance)
    )


def any_partition(instance: Instance) -> tuple[int, ...] | None:
    """Some z that fits the nodes and the GPU limits, found by the packing MILP; None if there is none (or too hard)."""
    kinds, nodes = instance.configurations, instance.nodes
    pairs = [(k, n) for k in range(len(kinds)) for n in range(len(nodes)) if _hosts(kinds[k], nodes[n].gpu_product)]
    count = len(pairs)
    upper = np.array([float(nodes[n].free_gpus) for _, n in pairs] + [float(n) for n in most_groups(instance)])
    program = LinearProgram(np.zeros(count + len(kinds)), np.zeros(len(upper)), upper, np.ones(len(upper), dtype=bool))
    for k, kind in enumerate(kinds):
        items = [(j, 1.0) for j, (kk, _) in enumerate(pairs) if kk == k]
        _add_row(program, 0.0, 0.0, [*items, (count + k, -float(_item(kind)[1]))])
    for n, node in enumerate(nodes):
        _add_row(
            program, -np.inf, float(node.free_gpus),
            [(j, float(_item(kinds[k])[0])) for j, (k, nn) in enumerate(pairs) if nn == n],
        )  # fmt: skip
    used = [(count + k, float(kind.gpus)) for k, kind in enumerate(kinds)]
    _add_row(program, float(instance.min_gpus), float(instance.gpu_budget), used)
    solution = program.solve(node_limit=_PACKING_NODES)
    return tuple(round(z) for z in solution.values[count:]) if solution.feasible else None


def _hosts(kind: ConfigurationInput, gpu_product: str) -> bool:
    return kind.gpu_product in ("", gpu_product)


class _Packer:
    """One packing: free GPUs per node, items still to place, and what was placed."""

    def __init__(self, instance: Instance, groups: list[int]) -> None:
        self.instance, self.left = instance, list(groups)
        self.nodes = sorted(instance.nodes, key=lambda n: n.name)
        self.free = {n.name: n.free_gpus for n in self.nodes}
        self.product_of = {n.name: n.gpu_product for n in self.nodes}
        self.kept: list[GroupPlacement] = []

    def fits(self) -> bool:
        """Whether the items left can be placed in the free GPUs left."""
        return self._assign() is not None

    def keep_running(self) -> None:
        """Pin running groups that are still wanted, largest first, while the rest still fits."""
        index = {k.name: i for i, k in enumerate(self.instance.configurations)}
        size = {k.name: k.gpus for k in self.instance.configurations}
        for group in sorted(self.instance.running, key=lambda g: (-size[g.configuration], g)):
            self._try_keep(group, index[group.configuration])

    def _try_keep(self, group: GroupPlacement, k: int) -> None:
        configuration = self.instance.configurations[k]
        needed = {node: configuration.tensor_parallel * group.stages.count(node) for node in sorted(set(group.stages))}
        whole = len(group.stages) == configuration.pipeline_parallel
        together = configuration.spans_nodes or len(needed) == 1
        allowed = all(node in self.product_of and self._may_host(node, k) for node in needed)
        # The fleet may have changed since the group started: what no longer fits its configuration is not kept.
        if not (whole and together and allowed):
            return
        if self.left[k] == 0 or any(self.free.get(node, -1) < gpus for node, gpus in needed.items()):
            return
        self._take(k, needed, 1)
        if self.fits():
            self.kept.append(group)
        else:
            self._take(k, needed, -1)

    def _take(self, k: int, needed: dict[str, int], sign: int) -> None:
        self.left[k] -= sign
        for node, gpus in needed.items():
            self.free[node] -= sign * gpus

    def placements(self) -> Iterator[GroupPlacement]:
        """Every group with its nodes; call after ``fits`` said yes."""
        yield from self.kept
        assigned = self._assign()
        if assigned is None:  # keep_running never leaves the rest without room
            raise AssertionError("placements() needs a packing that fits")
        for k, nodes in sorted(assigned.items()):
            configuration = self.instance.configurations[k]
            _, items = _item(configuration)
            stages_per_item = configuration.pipeline_parallel // items
            for start in range(0, len(nodes), items):
                stages = tuple(n for n in nodes[start : start + items] for _ in range(stages_per_item))
                yield GroupPlacement(configuration.name, stages)

    def _assign(self) -> dict[int, list[str]] | None:
        """Items to nodes: best fit decreasing, exact for dividing sizes; else the MILP decides."""
        greedy = self._best_fit_decreasing()
        if greedy is not None or chunk_rows_are_exact(self.instance):
            return greedy
        return self._by_milp()

    def _best_fit_decreasing(self) -> dict[int, list[str]] | None:
        free = dict(self.free)
        assigned: dict[int, list[str]] = {}
        order = sorted(range(len(self.left)), key=lambda k: (-_item(self.instance.configurations[k])[0], k))
        for k in order:
            size, items = _item(self.instance.configurations[k])
            for _ in range(self.left[k] * items):
                node = self._tightest(free, k, size)
                if node is None:
                    return None
                free[node] -= size
                assigned.setdefault(k, []).append(node)
        return {k: sorted(nodes) for k, nodes in assigned.items()}

    def _tightest(self, free: dict[str, int], k: int, size: int) -> str | None:
        room = [(free[n.name], n.name) for n in self.nodes if free[n.name] >= size and self._may_host(n.name, k)]
        return min(room)[1] if room else None

    def _may_host(self, node: str, k: int) -> bool:
        return _hosts(self.instance.configurations[k], self.product_of[node])

    def _by_milp(self) -> dict[int, list[str]] | None:
        pairs = [
            (k, n)
            for k in range(len(self.left))
            for n in range(len(self.nodes))
            if self.left[k] and self._may_host(self.nodes[n].name, k)
        ]
        counts = _solve_assignment(self, pairs)
        if counts is None:
            return None
        assigned: dict[int, list[str]] = {}
        for (k, n), count in zip(pairs, counts, strict=True):
            assigned.setdefault(k, []).extend([self.nodes[n].name] * count)
        return {k: nodes for k, nodes in assigned.items() if nodes}


def _solve_assignment(packer: _Packer, pairs: list[tuple[int, int]]) -> list[int] | None:
    """Integer items of configuration k on node n: all placed, no node over its free GPUs."""
    wanted = {k: z * _item(packer.instance.configurations[k])[1] for k, z in enumerate(packer.left) if z}
    if not pairs:
        return [] if not wanted else None
    upper = np.array([float(wanted[k]) for k, _ in pairs])
    program = LinearProgram(np.zeros(len(pairs)), np.zeros(len(pairs)), upper, np.ones(len(pairs), dtype=bool))
    for k, items in wanted.items():
        _add_row(program, float(items), float(items), [(j, 1.0) for j, (kk, _) in enumerate(pairs) if kk == k])
    for n, node in enumerate(packer.nodes):
        sizes = [(j, float(_item(packer.instance.configurations[k])[0])) for j, (k, nn) in enumerate(pairs) if nn == n]
        _add_row(program, -np.inf, float(packer.free[node.name]), sizes)
    solution = program.solve(node_limit=_PACKING_NODES)
    return [round(v) for v in solution.values] if solution.status is SolveStatus.OPTIMAL else None


def _add_row(program: LinearProgram, lower: float, upper: float, entries: list[tuple[int, float]]) -> None:
    columns: Indices = np.array([j for j, _ in entries], dtype=np.int32)
    values: Floats = np.array([v for _, v in entries], dtype=np.float64)
    program.add_rows(np.array([lower]), np.array([upper]), np.array([0], dtype=np.int32), columns, values)
