"""The reference model: its parts by hand, and the bracket against plans priced by the shared evaluator."""

import numpy as np
import pytest

from kvplan_solver.cost import Coefficients, evaluate
from kvplan_solver.errors import EnumerationTooLarge
from kvplan_solver.instance import Ambiguity, Instance
from kvplan_solver.newsvendor import worst_case_cost
from kvplan_solver.packing import fits
from kvplan_solver.queueing import variability
from kvplan_solver.reference import Bracket, bracket
from kvplan_solver.reference.cells import first_cells
from kvplan_solver.reference.model import build_model
from kvplan_solver.reference.partitions import placeable_partitions
from kvplan_solver.reference.reservation import reservation_costs
from kvplan_solver.service_time import service_matrix
from tests.builders import a_class, a_configuration, nodes
from tests.property.tiny_instances import REGIMES, random_tiny_instance, regime_of

SEEDS = range(40)


def _price(instance: Instance, groups: tuple[int, ...], reservation: float, share: float) -> float:
    """Cost of a one-class, one-configuration plan by the shared evaluator."""
    parts, _ = evaluate(
        Coefficients(instance),
        np.array(groups, dtype=float),
        np.array([reservation]),
        np.array([[share]]),
    )
    return parts.total


def test_one_class_on_one_group_is_bracketed_around_the_plan_everyone_would_choose() -> None:
    instance = Instance((a_class(),), (a_configuration(),), nodes(1), block_tokens=16)
    found = bracket(instance)
    best = min(_price(instance, (1,), r, 1.0) for r in range(128, 640 + 1, 16))
    assert found.lower <= best * (1 + 1e-9)
    assert found.upper == pytest.approx(best, rel=2e-3)
    assert found.width <= 2e-3


def test_a_late_class_is_bracketed_by_a_fine_search_over_its_share() -> None:
    c = a_class(
        latency_slo_seconds=1.0, arrival_rate=9.0, latency_weight=2000.0, rejection_weight=8000.0,
        preemption_cost=1.0,
    )  # fmt: skip
    instance = Instance((c,), (a_configuration(),), nodes(1), block_tokens=64)
    found = bracket(instance, width=1e-4)
    # Memory is ample, so the cheapest reservation does not depend on the share.
    cheapest = min(range(128, 705, 64), key=lambda r: _price(instance, (1,), r, 0.1))
    best = min(_price(instance, (1,), cheapest, share) for share in np.linspace(0, 1, 201))
    assert 0 < found.lower <= best * (1 + 1e-9)
    assert found.upper <= best * (1 + 1e-3)


def test_nothing_to_do_costs_nothing() -> None:
    found = bracket(Instance((a_class(arrival_rate=0.0),), (a_configuration(),), nodes(1)))
    assert found.lower == pytest.approx(0.0, abs=1e-6)
    assert found.upper == pytest.approx(0.0, abs=1e-6)


def test_without_gpus_everything_is_rejected() -> None:
    found = bracket(Instance((a_class(),), (a_configuration(),), nodes(0)))
    assert found.upper == pytest.approx(2 * 5000, rel=1e-5)
    assert found.lower == pytest.approx(2 * 5000, rel=1e-5)


def test_an_unreachable_floor_on_gpus_has_no_plan() -> None:
    instance = Instance((a_class(),), (a_configuration(tensor_parallel=2),), nodes(1, 1), min_gpus=2)
    assert bracket(instance) == Bracket(np.inf, np.inf)


def test_too_many_pairs_of_partition_and_caching_are_refused() -> None:
    classes = tuple(a_class(f"c{n}", shared_prefix_tokens=64) for n in range(4))
    configurations = tuple(a_configuration(f"v{n}") for n in range(4))
    with pytest.raises(EnumerationTooLarge, match="pairs of partition and caching"):
        bracket(Instance(classes, configurations, nodes(6)))


@pytest.mark.parametrize("seed", SEEDS[:20])
def test_the_bracket_is_narrow(seed: int) -> None:
    found = bracket(random_tiny_instance(seed), width=5e-3)
    assert found.lower <= found.upper
    assert found.width <= 6e-3


@pytest.mark.parametrize("seed", SEEDS)
def test_its_own_constants_agree_with_the_shared_modules(seed: int) -> None:
    instance = random_tiny_instance(seed)
    model = build_model(instance)
    assert np.allclose(model.T, service_matrix(instance), rtol=1e-12)
    assert np.allclose(model.v, variability(instance), rtol=1e-12)
    for c, reservations, losses in zip(instance.classes, model.reservations, model.losses, strict=True):
        shared = worst_case_cost(c, instance.ambiguity, reservations - c.input_tokens_p95)
        assert np.allclose(losses, shared, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_brute_force_packing_and_the_solver_s_packing_agree(seed: int) -> None:
    instance = random_tiny_instance(seed)
    budget = instance.gpu_budget
    ranges = [budget // k.gpus + 2 for k in instance.configurations]
    placeable = set(placeable_partitions(instance))
    for z in np.ndindex(*ranges):
        assert (z in placeable) == fits(instance, z), z


def test_a_group_of_three_does_not_fit_two_nodes_of_two() -> None:
    single = a_configuration(tensor_parallel=3)
    staged = a_configuration(pipeline_parallel=3, spans_nodes=True)
    assert placeable_partitions(Instance((a_class(),), (single,), nodes(2, 2))) == [(0,)]
    assert placeable_partitions(Instance((a_class(),), (staged,), nodes(2, 2))) == [(0,), (1,)]


def test_a_configuration_for_one_product_stays_off_the_others() -> None:
    named = a_configuration(gpu_product="H200")
    mixed = (*nodes(1, product="H200"), *nodes(4, product="L4")[:0])
    assert placeable_partitions(Instance((a_class(),), (named,), mixed)) == [(0,), (1,)]
    assert placeable_partitions(Instance((a_class(),), (named,), nodes(4, product="L4"))) == [(0,)]


def test_every_caching_pattern_of_deployed_groups_is_a_cell() -> None:
    classes = (a_class("a", shared_prefix_tokens=64), a_class("b", shared_prefix_tokens=64), a_class("c"))
    cells = first_cells(build_model(Instance(classes, (a_configuration(),), nodes(1))))
    assert [int(z) for z in cells.z[:, 0]] == [0, 1, 1, 1, 1]
    assert {tuple(row) for row in cells.cached[1:, :, 0].tolist()} == {
        (a, b, False) for a in (False, True) for b in (False, True)
    }


@pytest.mark.parametrize("ambiguity", list(Ambiguity))
def test_losses_come_from_the_definition_of_the_ambiguity_set(ambiguity: Ambiguity) -> None:
    c = a_class(lengths=(10, 20, 30), radius=0.5, max_output_tokens=40)
    instance = Instance((c,), (a_configuration(),), nodes(1), ambiguity=ambiguity)
    eta = np.array([0.0, 15.0, 30.0, 40.0])
    (found,) = reservation_costs(instance, (eta + c.input_tokens_p95,))
    assert np.allclose(found, worst_case_cost(c, ambiguity, eta), rtol=1e-9)


def test_the_tiny_instances_cover_every_regime() -> None:
    instances = [random_tiny_instance(seed) for seed in range(60)]
    assert {regime_of(seed) for seed in range(60)} == set(REGIMES)
    assert {len(i.classes) for i in instances} >= {1, 2}
    assert {len(i.configurations) for i in instances} == {1, 2, 3}
    assert {i.headroom_milli for i in instances} == {0, 200, 500}
    assert any(k.max_sequences > 1 for i in instances for k in i.configurations)
    assert any(c.shared_prefix_tokens > 0 for i in instances for c in i.classes)
    assert any(len(i.nodes) > 1 for i in instances)
    assert any(i.min_gpus > 0 for i in instances)
