"""The three blocks of Algorithm 1, one at a time."""

from dataclasses import replace

import numpy as np
import pytest

from kvplan_solver.instance import Instance
from kvplan_solver.literal.block2 import cache_prefixes
from kvplan_solver.literal.block3 import choose_partition, count_partitions, enumerate_partitions
from kvplan_solver.literal.decision import Decision, Problem
from kvplan_solver.literal.lp1 import propose_routing
from kvplan_solver.literal.lp2 import ReservationProgram, robust_loss
from kvplan_solver.newsvendor import robust_order, worst_case_cost
from tests.builders import a_class, a_configuration, nodes

PAIR = (a_configuration("tp1"), a_configuration("tp2", tensor_parallel=2, kv_capacity_tokens=60_000))


def _problem(*classes: object, **changes: object) -> Problem:
    return Problem(Instance(classes or (a_class(),), PAIR, nodes(8), block_tokens=1, **changes))  # type: ignore[arg-type]


def _routed(problem: Problem, groups: tuple[int, ...], share: float = 1.0) -> Decision:
    """Everything to the first configuration."""
    start = problem.start(groups)
    routing = np.zeros_like(start.routing)
    routing[:, 0] = share
    return problem.priced(replace(start, routing=routing))


def test_line_1_starts_at_the_mean_with_the_price_cp() -> None:
    start = _problem().start((1, 1))
    assert start.reservation.tolist() == [128 + 160]
    assert start.transport_price.tolist() == [10.0]
    assert not start.cached.any()


def test_lp1_uses_only_what_is_deployed() -> None:
    problem = _problem()
    proposal = propose_routing(problem, problem.start((0, 2)))
    assert proposal is not None
    assert proposal.routing.tolist() == [[0.0, 1.0]]


def test_lp1_respects_memory() -> None:
    problem = _problem(a_class(arrival_rate=9.0))
    tight = replace(problem.start((1, 0)), reservation=np.array([4000.0]))
    proposal = propose_routing(problem, tight)
    assert proposal is not None
    assert 0 < proposal.routing.sum() < 0.5
    assert problem.feasible(proposal)


def test_lp1_overloads_because_it_believes_the_frozen_wait() -> None:
    problem = _problem(a_class(arrival_rate=20.0, latency_weight=50_000.0, latency_slo_seconds=2.0))
    first = propose_routing(problem, problem.start((1, 0)))
    assert first is not None
    # It was chosen to be cheaper; the true wait at u_max costs more than rejecting everyone.
    assert first.objective > problem.start((1, 0)).objective
    assert not problem.better(first, problem.start((1, 0)))


def test_lp2_finds_the_closed_form_when_memory_is_ample() -> None:
    c = a_class(radius=5.0)
    problem = _problem(c)
    at = _routed(problem, (2, 0))
    found = ReservationProgram(problem).propose_reservation(at)
    assert found is not None
    order = robust_order(c, problem.instance.ambiguity)
    assert found.reservation[0] - 128 == pytest.approx(order.output_tokens)
    assert robust_loss(problem, found)[0] == pytest.approx(order.cost, rel=1e-9)


def test_lp2_shrinks_the_reservation_to_what_memory_holds() -> None:
    problem = _problem(a_class(arrival_rate=9.0))
    problem.capacity[0] = 6_000
    at = _routed(problem, (1, 0), share=0.8)
    assert not problem.feasible(replace(at, reservation=np.array([528.0])))
    found = ReservationProgram(problem).propose_reservation(at)
    assert found is not None
    assert found.reservation[0] < 528


def test_lp2_keeps_the_reservation_of_a_class_nobody_is_routed_from() -> None:
    problem = _problem()
    start = problem.start((1, 0))
    found = ReservationProgram(problem).propose_reservation(start)
    assert found is not None
    assert found.reservation.tolist() == start.reservation.tolist()


def test_the_loss_at_the_first_price_is_an_upper_bound_on_the_true_one() -> None:
    c = a_class(radius=20.0)
    problem = _problem(c)
    start = problem.start((1, 0))
    eta = start.reservation - 128
    assert robust_loss(problem, start)[0] >= worst_case_cost(c, problem.instance.ambiguity, eta)[0] - 1e-9


def test_block_2_caches_where_more_than_one_request_is_in_flight() -> None:
    busy = a_class("busy", shared_prefix_tokens=64, arrival_rate=2.0)
    idle = a_class("idle", shared_prefix_tokens=64, arrival_rate=0.1)
    bare = a_class("bare", arrival_rate=2.0)
    problem = _problem(busy, idle, bare)
    after = cache_prefixes(problem, _routed(problem, (1, 0)))
    assert after.cached[:, 0].tolist() == [True, False, False]


def test_block_2_leaves_out_the_headroom_of_the_exact_rule() -> None:
    c = a_class(shared_prefix_tokens=64, arrival_rate=0.55)  # 0.9 in flight: (1+κ)·0.9 > 1 > 0.9
    problem = _problem(c)
    at = _routed(problem, (1, 0))
    assert 0.85 < problem.in_flight(at)[0, 0] < 1
    assert cache_prefixes(problem, at) is at


@pytest.mark.parametrize(("gpus", "count"), [(0, 1), (1, 2), (2, 4), (8, 25)])
def test_block_3_lists_the_whole_of_z(gpus: int, count: int) -> None:
    instance = Instance((a_class(),), PAIR, nodes(gpus))
    listed = enumerate_partitions(instance)
    assert len(listed) == count == count_partitions(instance)
    assert len({tuple(row) for row in listed.tolist()}) == count
    assert all(row @ [1, 2] <= gpus for row in listed)


def test_block_3_adds_groups_until_the_wait_is_gone_but_no_more() -> None:
    problem = _problem(a_class(arrival_rate=9.0, latency_slo_seconds=1.9, latency_weight=1000.0))
    at = _routed(problem, (1, 0))
    after = choose_partition(problem, enumerate_partitions(problem.instance), at)
    assert after.objective < at.objective
    assert after.groups == (2, 0)


def test_block_3_keeps_what_carries_traffic_and_drops_what_does_not() -> None:
    problem = _problem()
    at = _routed(problem, (1, 3))
    after = choose_partition(problem, enumerate_partitions(problem.instance), at)
    assert after.groups == (1, 0)


def test_block_3_prefers_the_running_cost_it_is_told_of() -> None:
    problem = _problem(idle_gpu_second_cost=100.0)
    at = _routed(problem, (4, 0))
    after = choose_partition(problem, enumerate_partitions(problem.instance), at)
    assert after.groups == (1, 0)
    assert at.objective - after.objective == pytest.approx(300.0)
