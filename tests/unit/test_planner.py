"""The planner end to end on small problems: agreement, rounding, certificates, and plans judged as they are."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.problem import MOST_GROUPS
from kvplan_operator.plan.no_plan import NoPlan
from kvplan_operator.plan.planner import (
    Planned,
    assess_plan,
    decision_from_plan,
    make_plan,
    solver_options,
)
from kvplan_operator.plan.shares import round_shares
from kvplan_solver.certificate import Check, certify
from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import ClassInput, ConfigurationInput, GroupPlacement, Instance, NodeInput
from kvplan_solver.result import CostParts, Method, Options, Result, Status
from tests.planning import configuration, demo, fleet, inputs, inventory, plan, request_class, sample

SCENARIOS: dict[str, Any] = {
    "capacity to spare": inputs(),
    "demand far beyond capacity": inputs(
        classes=(
            request_class("chat", arrivals={"requestsPerSecondMilli": 60_000}),
            request_class("code", arrivals={"requestsPerSecondMilli": 60_000}),
        )
    ),
    "no traffic": inputs(classes=(request_class("chat", arrivals={"requestsPerSecondMilli": 0}),)),
    "one GPU": inputs(inventory=inventory(1)),
    "nodes of unequal size": inputs(inventory=inventory(1, 3, 2)),
    "GPUs have a price": inputs(fleet=fleet(objective={"gpuSecondWeight": 50, "idleGpuSecondWeight": 20})),
    "no headroom": inputs(fleet=fleet(objective={"headroomMilli": 0})),
}


@pytest.mark.parametrize("made_of", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_a_plan_passes_the_default_certificate_with(made_of: Any) -> None:
    planned = plan(made_of)
    assert planned.certificate.violations == ()
    assert certify(planned.instance, planned.result).holds


@pytest.mark.parametrize("made_of", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_shares_are_whole_thousandths_that_add_up_with(made_of: Any) -> None:
    for class_plan in plan(made_of).plan.spec.classes:
        assert sum(route.share_milli for route in class_plan.routes) == class_plan.admit_milli <= 1000


def test_demand_beyond_capacity_is_rejected_with_a_reason() -> None:
    planned = plan(SCENARIOS["demand far beyond capacity"])
    assert planned.result.rejected.sum() > 0.5
    assert {rejection.class_name for rejection in planned.result.rejections} <= {"chat", "code"}
    assert all(rejection.remedy for rejection in planned.result.rejections)


def test_the_plan_of_the_sample_fleet_agrees_with_its_batch_and_is_proven() -> None:
    planned = sample()
    assert planned.certificate.holds
    assert planned.fixed_point.converged
    assert planned.result.status is Status.OPTIMAL
    assert planned.result.rejected.max() == 0.0


def test_rounding_costs_no_more_than_the_gap_says() -> None:
    planned = demo()
    assert planned.result.lower_bound <= planned.result.objective
    assert planned.result.gap <= 0.005


def test_a_floor_that_the_nodes_cannot_meet_is_refused_with_the_field() -> None:
    made = fleet(nodes={"selector": {}, "minGpus": 64})
    with pytest.raises(InvalidInput, match=r"ServingFleet demo: spec.nodes.minGpus is 64: .* use at most 8"):
        plan(inputs(fleet=made))


def test_a_floor_that_no_groups_fill_is_refused_with_their_names() -> None:
    made = fleet(nodes={"selector": {}, "minGpus": 3}, configurations=[configuration("tp2", 2)])
    with pytest.raises(NoPlan, match=r"spec.nodes.minGpus is 3: no groups of tp2 that fit"):
        plan(inputs(fleet=made, inventory=inventory(2, 1)))


def test_costs_beyond_what_a_plan_can_hold_are_refused_and_not_written() -> None:
    dear = fleet(objective={"rejectionWeight": 1_000_000_000})
    busy = request_class("chat", arrivals={"requestsPerSecondMilli": 1_000_000_000})
    with pytest.raises(InvalidInput, match=r"no RoutingPlan holds that .* smaller rates or weights"):
        plan(inputs(fleet=dear, classes=(busy,)))


def test_neither_plan_nor_runner_up_has_more_groups_than_a_plan_can_list() -> None:
    vast = plan(inputs(inventory=inventory(1500, 500)))
    assert vast.certificate.holds
    assert vast.result.runner_up is not None
    assert max(*vast.result.groups, *vast.result.runner_up.groups) <= MOST_GROUPS


def test_a_deadline_that_has_passed_still_gives_a_plan() -> None:
    ticks = iter(range(0, 10_000_000, 100))
    planned = make_plan(inputs().problem(), Options(clock=lambda: float(next(ticks)), deadline_seconds=1.0))
    assert planned.certificate.holds
    assert planned.result.deadline_hit


def test_options_follow_the_fleet_and_need_a_clock_for_a_deadline() -> None:
    made = fleet(solver={"method": "Literal", "timeLimitSeconds": 7, "gapTargetMilli": 20})
    options = solver_options(made)
    assert (options.method, options.gap_target, options.deadline_seconds) == (Method.LITERAL, 0.02, None)
    assert solver_options(made, clock=lambda: 0.0).deadline_seconds == 7.0


def test_every_incumbent_is_streamed_and_time_is_summed_over_the_passes() -> None:
    seen: list[Result] = []
    ticks = iter(range(10_000_000))
    options = Options(clock=lambda: next(ticks) / 1e6, on_incumbent=seen.append)
    planned = make_plan(inputs().problem(), options)
    assert seen
    assert sum(planned.result.seconds.values()) > 0


def test_the_literal_method_makes_a_certified_plan_without_a_bound() -> None:
    planned = plan(inputs(fleet=fleet(solver={"method": "Literal"})))
    assert planned.certificate.holds
    assert planned.plan.spec.method is Method.LITERAL
    assert planned.plan.status.objective is not None
    assert planned.plan.status.objective.lower_bound_milli is None


def test_a_running_group_stays_where_it_is() -> None:
    where = demo().plan.spec.groups[0]
    running = tuple(GroupPlacement(where.configuration, ("b",)) for _ in range(1))
    planned = plan(inputs(inventory=inventory(4, 4, running=running)))
    assert running[0] in planned.result.placements


# Plans that exist


def test_a_plan_of_the_planner_is_judged_as_it_was_made() -> None:
    for planned in (demo(), sample()):
        judged = assess_plan(planned.plan, planned.problem)
        assert judged.certificate.violations == ()
        assert judged.result.objective == pytest.approx(planned.result.objective, rel=1e-7)
        assert judged.result.groups == planned.result.groups
        np.testing.assert_array_equal(judged.result.routing, planned.result.routing)
        np.testing.assert_array_equal(judged.result.cached, planned.result.cached)


def test_a_batch_that_makes_a_plan_look_faster_is_not_believed() -> None:
    planned = sample()
    group = planned.plan.spec.groups[0].configuration
    flattering = {"kvplan.dev/planned-batch": f"{group}=1.0"}
    metadata = planned.plan.metadata.model_copy(update={"annotations": flattering})
    judged = assess_plan(planned.plan.model_copy(update={"metadata": metadata}), planned.problem)
    assert judged.fixed_point.points[-1].frozen > 1.5
    assert judged.certificate.holds


def edited(**changes: Any) -> RoutingPlan:
    """The demo plan with parts of its spec replaced: ``groups`` and ``classes`` take edits by position."""
    document = demo().plan.to_wire()
    spec: Any = document["spec"]
    for kind in ("groups", "classes"):
        spec[kind] = [item | changes.get(kind, {}).get(n, {}) for n, item in enumerate(spec[kind])]
    spec |= changes.get("spec", {})
    return RoutingPlan.model_validate(document)


def without_placements() -> RoutingPlan:
    groups = range(len(demo().plan.spec.groups))
    return edited(groups={n: {"placements": []} for n in groups})


def test_a_plan_without_placements_is_placed_if_it_fits() -> None:
    judged = assess_plan(without_placements(), demo().problem)
    assert judged.certificate.holds
    assert len(judged.result.placements) == sum(demo().result.groups)


def violations(user_plan: RoutingPlan) -> set[Check]:
    return {violation.check for violation in assess_plan(user_plan, demo().problem).certificate.violations}


def test_broken_user_plans_are_named_by_rule() -> None:
    group = demo().plan.spec.groups[0]
    many = group.replicas + 40
    assert Check.GPU_BUDGET in violations(edited(groups={0: {"replicas": many, "placements": []}}))
    assert Check.RESERVATION_RANGE in violations(
        edited(classes={0: {"reservationTokens": 16_000}}),
    )


def test_a_share_that_goes_to_no_group_is_named_and_breaks_nothing() -> None:
    groups = [group.to_wire() | {"replicas": 0, "placements": []} for group in demo().plan.spec.groups]
    judged = assess_plan(edited(spec={"groups": groups}), demo().problem)
    assert Check.ROUTING_TO_NOTHING in {violation.check for violation in judged.certificate.violations}


FOREIGN: dict[str, tuple[dict[str, Any], str]] = {
    "another fleet": ({"fleetName": "other"}, "spec.fleetName is 'other'"),
    "a class is missing": ({"classes": []}, "spec.classes is 'chat'"),
}


@pytest.mark.parametrize(("spec", "message"), FOREIGN.values(), ids=FOREIGN.keys())
def test_a_plan_for_something_else_is_refused(spec: dict[str, Any], message: str) -> None:
    document: Any = demo().plan.to_wire()
    document["spec"] |= spec
    document["metadata"]["name"] = f"{document['spec']['fleetName']}-0123456789"
    with pytest.raises(InvalidInput) as caught:
        decision_from_plan(RoutingPlan.model_validate(document), demo().problem)
    assert message in str(caught.value)


def test_a_plan_with_a_configuration_that_is_gone_is_refused() -> None:
    only_other = [k for k in ("tp1", "tp2") if k != demo().plan.spec.groups[0].configuration]
    kept = tuple(k for k in fleet().spec.configurations if k.name in only_other)
    smaller = fleet().model_copy(update={"spec": fleet().spec.model_copy(update={"configurations": kept})})
    with pytest.raises(InvalidInput, match="configurations that can run are"):
        decision_from_plan(demo().plan, inputs(fleet=smaller).problem())


# Rounding


def two_slots() -> Instance:
    """One class on two configurations, either of which could carry all of it."""
    c = ClassInput("chat", 5.0, 100.0, 100, 100, 0, 100, np.array([50.0]), 5.0)
    slots = [ConfigurationInput(name, 1, 1, 100_000, 0.0, 0.01, max_sequences=4) for name in ("a", "b")]
    return Instance((c,), tuple(slots), (NodeInput("n", 2),))


def exact_result(shares: list[float]) -> Result:
    nothing = CostParts(0.0, 0.0, 0.0, 0.0)
    places = (GroupPlacement("a", ("n",)), GroupPlacement("b", ("n",)))
    routing, cached = np.array([shares]), np.zeros((1, 2), dtype=bool)
    return Result(
        Method.CERTIFIED, Status.OPTIMAL, (1, 1), places, (208,), routing, cached, (0.0,), nothing, 0.0
    )  # fmt: skip


ROUNDED: dict[str, tuple[list[float], list[int]]] = {
    "whole thousandths stay": ([0.25, 0.75], [250, 750]),
    "the largest remainder gets the odd one": ([0.3333, 0.6667], [333, 667]),
    "ties go to the first configuration": ([0.0005, 0.9995], [1, 999]),
    "float noise below a whole number is noise": ([0.6 - 1e-12, 0.4 - 1e-12], [600, 400]),
    "part of a thousandth is not admitted": ([0.3004, 0.4001], [300, 400]),
    "nothing stays nothing": ([0.0, 0.0], [0, 0]),
}


@pytest.mark.parametrize(("shares", "expected"), ROUNDED.values(), ids=ROUNDED.keys())
def test_shares_round_by_largest_remainders(shares: list[float], expected: list[int]) -> None:
    assert round_shares(two_slots(), exact_result(shares)).tolist() == [expected]


def overloaded(limit_share: float, rate: float = 5.0) -> Instance:
    """As above with T so that a share of ``limit_share`` brings configuration a to u_max."""
    base = two_slots()
    seconds = 0.98 * 4 / (rate * limit_share)
    slow = replace(base.configurations[0], service_seconds={"chat": seconds})
    return replace(base, configurations=(slow, base.configurations[1]))


def test_a_thousandth_that_overloads_goes_to_a_configuration_the_exact_plan_uses() -> None:
    shares = round_shares(overloaded(0.4996), exact_result([0.4996, 0.5004]))
    assert shares.tolist() == [[499, 501]]


def test_a_thousandth_that_overloads_everything_is_rejected() -> None:
    shares = round_shares(overloaded(0.9996), exact_result([1.0, 0.0]))
    assert shares.tolist() == [[999, 0]]


def test_a_class_without_reserved_tokens_can_give_way_where_time_is_short() -> None:
    """Its requests fit into the prefix; a second class with tokens and no share must not be cut below zero."""
    idle = ClassInput("idle", 1.0, 100.0, 128, 256, 0, 512, np.array([1.0, 2.0]), 30.0)
    tiny = ClassInput("tiny", 100.0, 16.0, 16, 16, 16, 16, np.zeros(4), 30.0)
    seconds = {"idle": 0.1, "tiny": 0.98 / 33.35}
    slots = [
        ConfigurationInput(k, 1, 1, 20_000, 0.0002, 0.01, max_sequences=1, service_seconds=seconds) for k in ("a", "b")
    ]
    made = Instance((idle, tiny), tuple(slots), (NodeInput("n", 2),))
    routing, cached = np.array([[0.0, 0.0], [0.3335, 0.3335]]), np.array([[False, False], [True, True]])
    decided = replace(
        exact_result([0.0, 0.0]), reservation_tokens=(144, 16), routing=routing, cached=cached,
        slo_excess_seconds=(0.0, 0.0),
    )  # fmt: skip
    assert round_shares(made, decided).tolist() == [[0, 0], [333, 333]]


def test_rounding_never_breaks_the_certificate_on_random_loads() -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        share = float(rng.uniform(0.05, 0.95))
        made = overloaded(share)
        rounded = round_shares(made, exact_result([share, 1 - share])) / 1000
        result = replace(exact_result([0.0, 0.0]), routing=rounded)
        checks = {violation.check for violation in certify(made, result).violations}
        assert not checks & {Check.UTILISATION, Check.MEMORY, Check.ROUTING_SUM, Check.ROUTING_RANGE}


def test_planned_is_the_same_for_any_order_of_classes() -> None:
    classes = inputs().classes
    backwards: Planned = plan(inputs(classes=classes[::-1]))
    assert backwards.plan == demo().plan
