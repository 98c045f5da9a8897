"""Every partition z that fits the nodes, by brute force; for tiny fleets only."""

from collections.abc import Iterator
from itertools import product

from kvplan_solver.instance import ConfigurationInput, Instance

Nodes = tuple[tuple[str, int], ...]
"""Per node its GPU product and what is still free."""


def placeable_partitions(instance: Instance) -> list[tuple[int, ...]]:
    """All z within the GPU limits whose groups fit the nodes, in lexicographic order."""
    return list(_placeable(instance))


def _placeable(instance: Instance) -> Iterator[tuple[int, ...]]:
    free = sum(node.free_gpus for node in instance.nodes)
    budget = free if instance.max_gpus is None else min(free, instance.max_gpus)
    gpus = [k.tensor_parallel * k.pipeline_parallel for k in instance.configurations]
    nodes = tuple((node.gpu_product, node.free_gpus) for node in instance.nodes)
    most = budget if instance.max_groups is None else instance.max_groups
    for z in product(*(range(min(budget // size, most) + 1) for size in gpus)):
        used = sum(n * size for n, size in zip(z, gpus, strict=True))
        if instance.min_gpus <= used <= budget and _fits(nodes, _items(instance, z)):
            yield z


def _items(instance: Instance, z: tuple[int, ...]) -> tuple[tuple[str, int], ...]:
    """(product, GPUs) of everything that must lie on one node, largest first."""
    found = []
    for n, k in zip(z, instance.configurations, strict=True):
        found += [_stage(k)] * (n * (k.pipeline_parallel if k.spans_nodes else 1))
    return tuple(sorted(found, key=lambda item: (-item[1], item[0])))


def _stage(k: ConfigurationInput) -> tuple[str, int]:
    whole = k.tensor_parallel * k.pipeline_parallel
    return k.gpu_product, k.tensor_parallel if k.spans_nodes else whole


def _fits(nodes: Nodes, items: tuple[tuple[str, int], ...]) -> bool:
    """Try every node for the first item, then the rest."""
    if not items:
        return True
    (wanted, size), rest = items[0], items[1:]
    for at, (has, free) in enumerate(nodes):
        if wanted in ("", has) and size <= free:
            left = (*nodes[:at], (has, free - size), *nodes[at + 1 :])
            if _fits(left, rest):
                return True
    return False
