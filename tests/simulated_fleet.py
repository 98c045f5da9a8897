"""One fleet under Auto, simulated: each minute runs what one tick decides, with the cluster as plain values.

Settle, solve if due, choose, judge, apply at once, render every status, with the real planner behind it. ``World``
holds what objects carry; what an operator keeps in memory beside that (``facts``, ``last``) is lost at a restart.
Identical problems are solved and judged once, which ``test_planner_determinism`` allows.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.fleet_status import ServingFleetStatus
from kvplan_operator.api.manifests import load_manifests
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.api.request_class_status import ObservedLatency, RequestClassStatus
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.api.routing_plan_status import RoutingPlanStatus
from kvplan_operator.gate.chain import in_force, judge
from kvplan_operator.gate.gather import gate_input
from kvplan_operator.model.facts import ClassFacts
from kvplan_operator.model.inventory import Inventory, inventory_from_objects
from kvplan_operator.model.lengths import lengths_from_quantiles
from kvplan_operator.model.problem import PlanningInputs, Problem
from kvplan_operator.model.snapshot import ClassMeasured, ClusterView, Fact, Measured, Quality, Snapshot
from kvplan_operator.plan.assess import assess_plan
from kvplan_operator.plan.choice import choose
from kvplan_operator.plan.diff import diff_plans
from kvplan_operator.plan.digest import inputs_digest, plan_digest
from kvplan_operator.plan.hot_values import hot_values, with_hot_values
from kvplan_operator.plan.judged import Judged, judge_plan
from kvplan_operator.plan.pending import outcome_of
from kvplan_operator.plan.planned import Planned
from kvplan_operator.plan.planner import make_plan, solver_options
from kvplan_operator.plan.settled import facts_in_status, settled
from kvplan_operator.plan.solve_due import LastSolve, inventory_digest, solve_due
from kvplan_operator.plan.standing import shelf_of
from kvplan_operator.status.fleet import FleetView, fleet_status
from kvplan_operator.status.request_class import ClassView, class_status
from kvplan_operator.status.routing_plan import PlanView, found_by, plan_status
from kvplan_operator.status.said import Progress, flag
from kvplan_solver.instance import GroupPlacement
from kvplan_solver.units import from_milli
from tests.gating import FRESH
from tests.routing_plans import NOW

TINY = Path(__file__).parent / "data" / "tiny_fleet"
MINUTES = 120
DONE = Progress(1, 1, complete=True)
OBSERVED = tuple(
    flag(type_, True, ConditionReason.NOTHING_WRONG, "")
    for type_ in (
        ConditionType.INVENTORY_READY, ConditionType.METRICS_FRESH, ConditionType.PLAN_FEASIBLE,
        ConditionType.TABLE_FRESH,
    )
)  # fmt: skip
Noise = Callable[[], float]


@dataclass
class World:
    """The objects of one fleet, and what was counted while they lived."""

    fleet: ServingFleet
    classes: dict[str, RequestClass]
    plans: dict[str, RoutingPlan] = field(default_factory=dict)
    nodes: tuple[dict[str, Any], ...] = ()
    facts: dict[str, ClassFacts] = field(default_factory=dict)
    last: LastSolve | None = None
    solved: dict[Any, Planned] = field(default_factory=dict)
    judged: dict[Any, Judged] = field(default_factory=dict)
    truth: dict[str, ClassFacts] = field(default_factory=dict)
    changes: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)
    solves: list[int] = field(default_factory=list)


def tiny_world() -> World:
    """The tiny fleet under Auto, whose classes state nothing that can be measured."""
    documents = [
        d for name in ("fleet", "classes", "nodes") for d in yaml.safe_load_all((TINY / f"{name}.yaml").read_text())
    ]
    found = load_manifests(documents)
    plain = found.fleets[0].spec.to_wire() | {"planPolicy": {"mode": "Auto"}}
    fleet = ServingFleet.model_validate({"metadata": {"name": "tiny"}, "spec": plain})
    world = World(fleet, {}, nodes=tuple(found.nodes))
    for request_class in found.classes:
        name, wire = request_class.metadata.name, request_class.to_wire()
        world.truth[name] = measured_truth(request_class)
        measured = ("arrivals", "outputLengths")
        stated = {key: value for key, value in request_class.spec.to_wire().items() if key not in measured}
        world.classes[name] = RequestClass.model_validate({"metadata": wire["metadata"], "spec": stated})
    return world


def measured_truth(request_class: RequestClass) -> ClassFacts:
    points = request_class.spec.output_lengths.quantiles or ()
    table = ([from_milli(p.probability_milli) for p in points], [float(p.tokens) for p in points])
    rate = request_class.spec.arrivals.requests_per_second_milli
    assert rate is not None
    samples = lengths_from_quantiles(*table, max_points=200).samples
    return ClassFacts(requests_per_second=from_milli(rate), arrival_scv=1.0, output_lengths=samples)


def noisy(truth: ClassFacts, load: float, noise: Noise) -> ClassFacts:
    assert truth.requests_per_second is not None
    assert truth.output_lengths is not None
    longest = float(truth.output_lengths.max())
    return replace(
        truth,
        requests_per_second=truth.requests_per_second * load * noise(),
        arrival_scv=noise(),
        output_lengths=np.minimum(truth.output_lengths * noise(), longest),
    )


def tick(world: World, minute: int, load: float, noise: Noise) -> None:
    """One look: the steps of the reconcile tick, without I/O."""
    now = NOW + 60.0 * minute
    facts = {name: noisy(truth, load, noise) for name, truth in world.truth.items()}
    inventory = inventory_now(world)
    inputs = PlanningInputs(world.fleet, tuple(world.classes.values()), inventory, facts)
    before = world.facts or facts_in_status(tuple(world.classes.values()))
    found = settled(inputs, before)
    world.facts, problem = dict(found.facts), found.problem()
    solve_if_due(world, problem, minute, now)
    decide(world, problem, facts, minute, now)


def inventory_now(world: World) -> Inventory:
    """Free GPUs of the nodes, with the groups of the plan in force on them."""
    free = inventory_from_objects(world.nodes, (), world.fleet)
    current = world.plans.get(shelf_of(world.fleet, world.plans.values()).current or "")
    groups = current.spec.groups if current else ()
    running = sorted(GroupPlacement(g.configuration, p.stages) for g in groups for p in g.placements)
    return replace(free, running=tuple(running))


def fingerprint(problem: Problem) -> Any:
    """All that differs between the problems of one world."""
    lengths = tuple((c.arrival_rate, c.arrival_scv, c.output_lengths.tobytes()) for c in problem.instance.classes)
    return lengths, problem.instance.running


def today(world: World, plan: RoutingPlan, problem: Problem) -> Judged:
    """The plan judged with its hot values in force."""
    key = (fingerprint(problem), plan.metadata.name, plan.status.hot_values, plan.status.conditions)
    if key not in world.judged:
        found = judge_plan(assess_plan(with_hot_values(plan, plan.status.hot_values), problem))
        world.judged[key] = replace(found, plan=plan, digest=plan_digest(plan.spec))
    return replace(world.judged[key], plan=plan)


def solve_if_due(world: World, problem: Problem, minute: int, now: float) -> None:
    inputs = inputs_digest(world.fleet.spec, {name: c.spec for name, c in world.classes.items()})
    ground = inventory_digest(problem.inventory)
    shelf = shelf_of(world.fleet, world.plans.values())
    current, pending = (
        today(world, world.plans[digest], problem) if digest else None for digest in (shelf.current, shelf.candidate)
    )
    waiting = pending or current
    holds = waiting is None or waiting.holds
    if (
        solve_due(world.fleet, now, world.last, inputs_digest=inputs, inventory_digest=ground, waiting_holds=holds)
        is None
    ):
        return
    key = fingerprint(problem)
    planned = world.solved[key] = world.solved.get(key) or make_plan(problem, solver_options(world.fleet))
    world.last = LastSolve(now, inputs, ground)
    world.solves.append(minute)
    outcome = outcome_of(
        judge_plan(planned), pending, current, from_milli(world.fleet.spec.replan.min_improvement_milli)
    )
    if outcome.candidate is not None:
        digest, plan = outcome.candidate.digest, outcome.candidate.plan
        found = PlanView(plan, now, found_by(planned), problems=outcome.candidate.problems)
        store_plan(world, digest, world.plans.get(digest, plan), found, minute)
        reference = {"name": plan.metadata.name, "digest": digest}
        world.fleet = with_fleet_status(world, world.fleet.status.to_wire() | {"candidatePlan": reference})
    if outcome.retuned is not None and shelf.current is not None:
        store_hot(world, shelf.current, outcome.retuned.plan, minute)


def decide(world: World, problem: Problem, facts: dict[str, ClassFacts], minute: int, now: float) -> None:
    shelf = shelf_of(world.fleet, world.plans.values())
    judged = {digest: today(world, plan, problem) for digest, plan in shelf.plans.items()}
    choice = choose(world.fleet.spec.plan_policy.mode, shelf, judged)
    look = Snapshot(
        now, world.fleet, "1", tuple(world.classes.values()), tuple(world.plans.values()), ClusterView(), Measured()
    )
    asked = gate_input(look, choice, shelf, judged, problem.inventory, FRESH)
    verdict = judge(asked) if asked is not None else None
    after = in_force(shelf.current, verdict)
    if after is not None and after != shelf.current:
        change = diff_plans(world.plans.get(shelf.current or ""), world.plans[after])
        world.changes += [minute] if any(row.cold for row in change.rows) else []
    for digest, plan in shelf.plans.items():
        hot = plan.status.hot_values or hot_values(plan)
        view = PlanView(
            plan, now, in_force=digest == after, progress=DONE, hot=hot,
            replaced_by=shelf.name_of(after) if after else "", problems=judged[digest].problems,
        )  # fmt: skip
        store_plan(world, digest, plan, view, minute)
    view_of_fleet = FleetView(world.fleet, now, shelf, choice, verdict, DONE if after else None, OBSERVED)
    write_fleet(world, fleet_status(view_of_fleet), minute)
    for name in world.classes:
        write_class(world, problem, name, facts[name], minute, now)


def store_plan(world: World, digest: str, plan: RoutingPlan, view: PlanView, minute: int) -> None:
    status = plan_status(view)
    world.writes += [minute] if status != plan.status.to_wire() else []
    world.plans[digest] = plan.model_copy(update={"status": RoutingPlanStatus.model_validate(status)})


def store_hot(world: World, digest: str, retuned: RoutingPlan, minute: int) -> None:
    plan, world.writes = world.plans[digest], [*world.writes, minute]
    fresh = plan.status.model_copy(update={"hot_values": hot_values(retuned)})
    world.plans[digest] = plan.model_copy(update={"status": fresh})


def with_fleet_status(world: World, status: dict[str, Any]) -> ServingFleet:
    return world.fleet.model_copy(update={"status": ServingFleetStatus.model_validate(status)})


def write_fleet(world: World, status: dict[str, Any], minute: int) -> None:
    world.writes += [minute] if status != world.fleet.status.to_wire() else []
    world.fleet = with_fleet_status(world, status)


def write_class(world: World, problem: Problem, name: str, facts: ClassFacts, minute: int, now: float) -> None:
    plain, rate = world.classes[name], facts.requests_per_second
    assert rate is not None
    latency = ObservedLatency(mean_milliseconds=round(500 * rate), p99_milliseconds=round(900 * rate))
    fact = Fact(ClassMeasured(facts, round(3_600 * rate), latency), Quality.VALUE, "prometheus default", now)
    planned = next(c for c in problem.instance.classes if c.name == name)
    status = class_status(ClassView(plain, now, "tiny", fact, planned, problem.instance.ambiguity, 1_000))
    world.writes += [minute] if status != plain.status.to_wire() else []
    world.classes[name] = plain.model_copy(update={"status": RequestClassStatus.model_validate(status)})


def two_hours(seed: int, load: Callable[[int], float], restarts: tuple[int, ...] = ()) -> World:
    world, random = tiny_world(), np.random.default_rng(seed)
    for minute in range(MINUTES):
        if minute in restarts:
            world.facts, world.last = {}, None
        tick(world, minute, load(minute), lambda: float(random.uniform(0.95, 1.05)))
    return world
