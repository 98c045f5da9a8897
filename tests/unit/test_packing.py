"""Node fit: chunk rows, placement, staying put, and the MILP for sizes that do not divide one another."""

import itertools

import numpy as np
import pytest

from kvplan_solver.instance import GroupPlacement, Instance, NodeInput
from kvplan_solver.packing import chunk_rows_are_exact, fits, most_groups, place
from tests.builders import a_class, a_configuration, nodes


def _instance(sizes: list[int], free: list[int], **changes: object) -> Instance:
    configurations = tuple(a_configuration(f"tp{size}", tensor_parallel=size) for size in sizes)
    return Instance((a_class(),), configurations, nodes(*free), **changes)  # type: ignore[arg-type]


def _fits_by_brute_force(sizes: list[int], free: list[int], groups: tuple[int, ...]) -> bool:
    items = [size for size, count in zip(sizes, groups, strict=True) for _ in range(count)]
    if sum(items) > sum(free):
        return False
    return any(
        all(sum(s for s, n in zip(items, nodes_, strict=True) if n == node) <= room for node, room in enumerate(free))
        for nodes_ in itertools.product(range(len(free)), repeat=len(items))
    )


@pytest.mark.parametrize(
    ("why", "sizes", "free", "groups", "expected"),
    [
        ("two halves of two nodes are no whole node", [8], [4, 4], (1,), False),
        ("a whole node holds a whole group", [8], [8, 4], (1,), True),
        ("large groups first leave room for small ones", [1, 4], [5, 4], (1, 2), True),
        ("three do not divide eight", [3], [8, 8], (5,), False),
        ("three and two share a node of five", [2, 3], [5, 5], (2, 2), True),
        ("no GPUs hold no groups", [1], [0], (1,), False),
        ("no groups always fit", [4], [0], (0,), True),
        ("more than the budget never fits", [1], [2], (3,), False),
    ],
)
def test_fit(why: str, sizes: list[int], free: list[int], groups: tuple[int, ...], expected: bool) -> None:
    assert fits(_instance(sizes, free), groups) is expected, why


@pytest.mark.parametrize("sizes", [[1, 2, 4], [2, 3], [1, 3, 5], [2, 4]])
def test_fit_agrees_with_brute_force(sizes: list[int]) -> None:
    rng = np.random.default_rng(7)
    for _ in range(25):
        free = rng.integers(0, 7, size=3).tolist()
        groups = tuple(rng.integers(0, 3, size=len(sizes)).tolist())
        instance = _instance(sizes, free)
        expected = _fits_by_brute_force(sizes, free, groups)
        assert fits(instance, groups) is expected, (sizes, free, groups)
        assert (place(instance, groups) is not None) is expected


def test_dividing_sizes_need_no_search() -> None:
    assert chunk_rows_are_exact(_instance([1, 2, 4, 8], [8, 3]))
    assert not chunk_rows_are_exact(_instance([2, 3], [8, 3]))


def test_most_groups_counts_whole_chunks_per_node() -> None:
    assert most_groups(_instance([1, 2, 4], [7, 5])).tolist() == [12, 5, 2]


def test_tensor_parallel_never_crosses_a_node_but_stages_may() -> None:
    spread = a_configuration("tp2pp2", tensor_parallel=2, pipeline_parallel=2, spans_nodes=True)
    whole = a_configuration("tp2pp2", tensor_parallel=2, pipeline_parallel=2)
    assert place(Instance((a_class(),), (whole,), nodes(3, 3)), (1,)) is None
    assert place(Instance((a_class(),), (spread,), nodes(3, 3)), (1,)) == (GroupPlacement("tp2pp2", ("n0", "n1")),)


def test_groups_go_only_to_nodes_of_their_product() -> None:
    h200 = a_configuration("h200", tensor_parallel=4, gpu_product="H200")
    fleet = (NodeInput("a", 8, "A100"), NodeInput("h", 8, "H200"))
    instance = Instance((a_class(),), (h200,), fleet)
    assert most_groups(instance).tolist() == [2]
    placed = place(instance, (2,))
    assert placed is not None
    assert {p.stages for p in placed} == {("h",)}


def test_a_running_group_stays_while_the_rest_fits() -> None:
    running = (GroupPlacement("tp2", ("n2",)),)
    instance = _instance([2, 4], [4, 4, 4], running=running)
    placed = place(instance, (1, 2))
    assert placed is not None
    assert running[0] in placed


def test_a_running_group_moves_when_it_is_in_the_way() -> None:
    running = (GroupPlacement("tp1", ("n0",)),)
    instance = Instance(
        (a_class(),),
        (a_configuration("tp1"), a_configuration("tp8", tensor_parallel=8)),
        nodes(8, 1),
        running=running,
    )
    placed = place(instance, (1, 1))
    assert placed == (GroupPlacement("tp1", ("n1",)), GroupPlacement("tp8", ("n0",)))


def test_limits_on_gpus_bind_the_placement() -> None:
    assert place(_instance([1], [8], max_gpus=3), (4,)) is None
    assert place(_instance([1], [8], min_gpus=3), (2,)) is None
