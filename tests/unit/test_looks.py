"""Looks at one fleet from end to end, with an API server that is a dictionary."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.kube.resources import CONFIG_MAPS, DEPLOYMENTS, REQUEST_CLASSES, ROUTING_PLANS
from kvplan_operator.model.snapshot import ClusterView, Measured
from kvplan_operator.plan.digest import plan_name
from kvplan_operator.reconcile import measuring, tick
from kvplan_operator.reconcile.deciding import Decided, decide
from kvplan_operator.reconcile.measuring import MOVING_SECONDS
from kvplan_operator.reconcile.tick import AWAITED_SECONDS
from tests.looks import Lab
from tests.routing import engine, router_pod


def in_a_lab(work: Callable[[Lab], Awaitable[None]], **spec: Any) -> None:
    """Run a scenario."""

    async def life() -> None:
        await work(Lab(**spec))

    asyncio.run(life())


def not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody answers at once, whoever is asked."""

    async def nothing(*_: Any) -> Measured:
        return Measured()

    for name in ("measure", "look_at_pods"):
        monkeypatch.setattr(measuring, name, nothing)


def test_a_fleet_gets_a_candidate_and_then_nothing_more_is_written() -> None:
    async def scenario(lab: Lab) -> None:
        await lab.look(3)
        assert lab.condition("Ready") == ("True", "ProposedOnly")
        assert [item["metadata"]["name"] for item in lab.store.of(ROUTING_PLANS)] == [f"demo-{lab.candidate[:10]}"]
        written = len(lab.store.writes)
        await lab.look(5)
        assert lab.store.writes[written:] == []

    in_a_lab(scenario)


def test_the_plan_is_stored_before_the_status_names_it() -> None:
    async def scenario(lab: Lab) -> None:
        await lab.look(3)
        verbs = [(verb, what) for verb, what, _ in lab.store.writes]
        first = verbs.index(("create", "routingplans"))
        assert ("apply", "routingplans/status") in verbs[first:]
        assert verbs.index(("apply", "servingfleets/status"), first) > first
        assert "candidatePlan" in lab.fleet["status"]

    in_a_lab(scenario)


def test_an_accepted_plan_is_written_down_as_in_force_before_anything_is_done_for_it() -> None:
    async def scenario(lab: Lab) -> None:
        await lab.look(3)
        digest = lab.candidate
        lab.accept(digest)
        await lab.look()
        assert lab.fleet["status"]["currentPlan"]["digest"] == digest
        assert not lab.store.of(DEPLOYMENTS)
        await lab.look()
        assert lab.store.of(DEPLOYMENTS)
        assert lab.condition("RolloutComplete") == ("False", "RollingOut")

    in_a_lab(scenario)


def test_a_restarted_operator_goes_on_with_the_plan_in_force() -> None:
    async def scenario(lab: Lab) -> None:
        await lab.look(3)
        lab.accept(lab.candidate)
        await lab.look()
        lab.restart()
        await lab.look()
        assert lab.store.of(DEPLOYMENTS)
        assert lab.condition("Ready")[0] == "False"

    in_a_lab(scenario)


def test_nothing_is_started_or_stopped_before_engines_and_routers_were_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(lab: Lab) -> None:
        await lab.look(3)
        lab.accept(lab.candidate)
        await lab.look()
        answered = asyncio.Event()

        async def slow(*_: Any) -> Measured:
            await answered.wait()
            return Measured()

        monkeypatch.setattr(measuring, "measure", slow)
        monkeypatch.setattr(measuring, "FIRST_SECONDS", 0.0)
        lab.restart()
        await lab.look(3)
        assert not lab.store.of(DEPLOYMENTS)
        answered.set()
        await lab.look(2)
        assert lab.store.of(DEPLOYMENTS)

    in_a_lab(scenario)


@pytest.mark.parametrize("ready", [True, False], ids=["live", "starting"])
def test_a_router_that_stays_silent_is_not_asked_every_other_second_for_ever(
    monkeypatch: pytest.MonkeyPatch, ready: bool
) -> None:
    not_measured(monkeypatch)

    async def scenario(lab: Lab) -> None:
        view = lab.seen.view

        async def seen(*of: Any) -> ClusterView:
            return replace(await view(*of), pods=(router_pod("router-0", ready=ready),))

        monkeypatch.setattr(lab.seen, "view", seen)
        assert (await lab.look(4)).within_seconds == MOVING_SECONDS
        lab.now += AWAITED_SECONDS
        assert (await lab.look()).within_seconds is None

    in_a_lab(scenario)


def test_a_restart_at_rest_writes_nothing() -> None:
    async def scenario(lab: Lab) -> None:
        await lab.look(4)
        written = len(lab.store.writes)
        lab.restart()
        await lab.look(4)
        assert lab.store.writes[written:] == []
        assert len(lab.solver.asked) == 2

    in_a_lab(scenario)


def test_the_next_solve_starts_from_the_plan_that_waits() -> None:
    async def scenario(lab: Lab) -> None:
        await lab.look(3)
        lab.change(objective={"headroomMilli": 250})
        await lab.look(2)
        (_, first), (_, second) = lab.solver.asked
        assert first is None
        assert second is not None
        assert second.metadata.name == f"demo-{lab.candidate[:10]}" or second.metadata.name.startswith("demo-")

    in_a_lab(scenario)


def test_a_solve_beside_a_plan_in_force_is_told_what_runs() -> None:
    async def scenario(lab: Lab) -> None:
        await lab.look(3)
        accepted = lab.candidate
        lab.accept(accepted)
        await lab.look(2)
        lab.change(objective={"headroomMilli": 250})
        await lab.look(2)
        first, second = lab.solver.running
        assert first is None
        assert second is not None
        assert second.metadata.name == plan_name(second.spec) == f"demo-{accepted[:10]}"

    in_a_lab(scenario)


@pytest.mark.parametrize("assessed", [True, False])
def test_a_pod_that_a_rollout_ends_before_it_could_serve_is_in_no_index(
    monkeypatch: pytest.MonkeyPatch, assessed: bool
) -> None:
    pods = (engine("stays", "tp1"), engine("goes", "tp1"))
    not_measured(monkeypatch)

    def ending(*of: Any) -> Decided:
        decided = decide(*of)
        step = None if decided.step is None else replace(decided.step, unlisted=frozenset({pods[1]["metadata"]["uid"]}))
        return replace(decided, step=step)

    async def scenario(lab: Lab) -> None:
        await lab.look(3)
        lab.accept(lab.candidate)
        await lab.look(2)
        view = lab.seen.view

        async def seen(*of: Any) -> ClusterView:
            return replace(await view(*of), pods=pods)

        monkeypatch.setattr(lab.seen, "view", seen)
        monkeypatch.setattr(tick, "decide", ending)
        if not assessed:  # without a node the plan cannot be assessed, and the index in force is carried on
            lab.change(nodes={"selector": {"matchLabels": {"pool": "elsewhere"}}})
        await lab.look()
        [index] = [item for item in lab.store.of(CONFIG_MAPS) if item["metadata"]["name"] == "demo-table"]
        listed = {slot.get("podName") for slot in json.loads(index["data"]["index.json"])["slots"]}
        assert "stays" in listed
        assert "goes" not in listed

    in_a_lab(scenario)


def test_a_digest_that_no_plan_has_is_a_condition_that_a_person_can_act_on() -> None:
    async def scenario(lab: Lab) -> None:
        await lab.look(3)
        lab.accept("0" * 64)
        await lab.look()
        assert lab.condition("Ready") == ("False", "UnknownDigest")
        assert lab.condition("Stalled") == ("True", "UnknownDigest")
        assert not lab.store.of(DEPLOYMENTS)

    in_a_lab(scenario)


def test_with_a_plan_in_force_a_digest_that_no_plan_has_is_told_as_well() -> None:
    async def scenario(lab: Lab) -> None:
        await lab.look(3)
        lab.accept(lab.candidate)
        await lab.look(2)
        lab.accept("0" * 64)
        await lab.look()
        assert lab.condition("PlanAccepted") == ("False", "UnknownDigest")
        assert lab.condition("Stalled") == ("True", "UnknownDigest")
        assert "currentPlan" in lab.fleet["status"]

    in_a_lab(scenario)


def test_a_plan_of_people_whose_queues_never_empty_is_refused_and_does_not_stop_the_fleet() -> None:
    async def scenario(lab: Lab) -> None:
        await lab.look(3)
        plan = lab.store.of(ROUTING_PLANS)[0]
        for group in plan["spec"]["groups"]:
            group.update(replicas=1, placements=group["placements"][:1])
        name = plan_name(RoutingPlan.model_validate(plan).spec)
        lab.store.put(ROUTING_PLANS, {**plan, "metadata": {"name": name, "namespace": "default"}, "status": {}})
        for item in lab.store.of(REQUEST_CLASSES):
            item["spec"]["arrivals"]["requestsPerSecondMilli"] = 60_000
            lab.store.put(REQUEST_CLASSES, item)
        await lab.look()
        stored = lab.store.objects[ROUTING_PLANS.plural, "default", name]["status"]
        proposed = next(c for c in stored["conditions"] if c["type"] == "Proposed")
        assert proposed["status"] == "False"
        assert "forecast" not in stored

    in_a_lab(scenario)


def test_a_plan_in_force_that_somebody_deletes_is_written_again() -> None:
    async def scenario(lab: Lab) -> None:
        await lab.look(3)
        digest = lab.candidate
        lab.accept(digest)
        await lab.look(2)
        key = (ROUTING_PLANS.plural, "default", f"demo-{digest[:10]}")
        del lab.store.objects[key]
        await lab.look(2)
        assert key in lab.store.objects
        assert lab.fleet["status"]["currentPlan"]["digest"] == digest

    in_a_lab(scenario)


def test_a_conflict_ends_the_look_and_loses_nothing_that_a_solve_found() -> None:
    async def scenario(lab: Lab) -> None:
        lab.solver.may.clear()
        await lab.look(2)
        lab.solver.may.set()
        for _ in range(8):
            await asyncio.sleep(0)
        lab.store.refuse_next = 1
        again = await lab.look()
        assert again.within_seconds == MOVING_SECONDS
        await lab.look(2)
        assert lab.condition("Ready") == ("True", "ProposedOnly")
        assert "candidatePlan" in lab.fleet["status"]

    in_a_lab(scenario)


@pytest.mark.parametrize("refused", range(1, 6))
def test_wherever_a_conflict_strikes_the_fleet_ends_up_the_same(refused: int) -> None:
    async def scenario(lab: Lab) -> None:
        await lab.look()
        for _ in range(refused):
            lab.store.refuse_next = 1
            await lab.look()
        await lab.look(3)
        assert lab.condition("Ready") == ("True", "ProposedOnly")
        assert len(lab.store.of(ROUTING_PLANS)) == 1

    in_a_lab(scenario)


def test_a_solve_whose_inputs_changed_is_killed_and_another_one_starts() -> None:
    async def scenario(lab: Lab) -> None:
        lab.solver.may.clear()
        await lab.look(2)
        lab.change(objective={"headroomMilli": 250})
        await lab.look(2)
        assert lab.solver.cancelled == 1
        assert len(lab.solver.asked) == 2
        lab.solver.may.set()
        await lab.look(3)
        assert "candidatePlan" in lab.fleet["status"]

    in_a_lab(scenario)


def test_accepting_a_plan_is_no_change_of_inputs() -> None:
    async def scenario(lab: Lab) -> None:
        await lab.look(3)
        lab.accept(lab.candidate)
        await lab.look(2)
        assert len(lab.solver.asked) == 1

    in_a_lab(scenario)


def test_a_suspended_fleet_is_not_planned() -> None:
    async def scenario(lab: Lab) -> None:
        await lab.look(3)
        assert lab.solver.asked == []
        assert lab.condition("Ready") == ("False", "Suspended")

    in_a_lab(scenario, suspend=True)


def test_what_cannot_be_planned_is_refused_by_field_and_nothing_is_solved() -> None:
    async def scenario(lab: Lab) -> None:
        await lab.look(2)
        assert lab.solver.asked == []
        assert lab.condition("InventoryReady") == ("False", "NoNodes")
        assert lab.condition("PlanFeasible") == ("False", "InputsRefused")

    in_a_lab(scenario, nodes={"selector": {"matchLabels": {"pool": "elsewhere"}}})


def test_a_fleet_that_went_is_looked_at_without_harm() -> None:
    async def scenario(lab: Lab) -> None:
        lab.store.objects.clear()
        await lab.looks.tick()
        assert lab.store.writes == []

    in_a_lab(scenario)
