"""The step planner in the situations that the property tests meet by chance only."""

import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kvplan_operator.act.commands import CreateConfig, CreateSet, PatchAdopted, ScaleSet, StartDrain, StopDrain
from kvplan_operator.act.rollout import RolloutStep, plan_rollout
from kvplan_operator.act.world import RolloutRules
from kvplan_operator.api.conditions import ConditionReason
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.snapshot import EngineState, Fact, Measured, Quality
from tests.planning import configuration, pod, request_class
from tests.rollout_scenes import JOINED, SPLIT, adopting, started
from tests.rollouts import RULES, in_force, rollout_fleet, rollout_plan
from tests.routing import router_pod
from tests.simulated_cluster import SimulatedCluster


def step_to(cluster: SimulatedCluster, plan: RoutingPlan, rules: RolloutRules = RULES, **measured: Any) -> RolloutStep:
    """One look that changes nothing."""
    snapshot = cluster.snapshot()
    seen = replace(snapshot, measured=replace(snapshot.measured, **measured))
    return plan_rollout(seen, plan, cluster.index, rules)


def said(step: RolloutStep) -> str:
    return step.refusal.message if step.refusal is not None else step.waiting_for


def draining(cluster: SimulatedCluster, plan: RoutingPlan) -> str:
    """Begin the first drain and return the name of its pod."""
    step = cluster.look(plan, RULES)
    (command,) = step.commands
    assert isinstance(command, StartDrain)
    cluster.execute(step.commands)
    cluster.look(plan, RULES)
    return command.pod.name


def engine(cluster: SimulatedCluster, pod_name: str, running: int) -> dict[str, Fact[EngineState]]:
    uid = cluster.pods[pod_name]["metadata"]["uid"]
    return {uid: Fact(EngineState(1_000, running, 0), Quality.VALUE, pod_name, cluster.now)}


# The first plan


def test_the_first_plan_comes_all_at_once() -> None:
    cluster = SimulatedCluster(rollout_fleet(1, 2, 4), (4, 4), random.Random(1))
    commands = cluster.look(SPLIT, RULES).commands
    assert [(type(command), getattr(command, "replicas", 0)) for command in commands] == [(CreateSet, 2)] * 2


def test_the_first_plan_takes_no_more_than_is_free() -> None:
    cluster = SimulatedCluster(rollout_fleet(1, 2, 4), (4, 4), random.Random(1))
    cluster.pods["foreign"] = pod("foreign", "n0", 3, labels={"kvplan.dev/set": ""})
    step = step_to(cluster, SPLIT)
    assert [getattr(command, "replicas", 0) for command in step.commands] == [2]


def test_without_a_plan_of_any_group_nothing_is_done() -> None:
    cluster = SimulatedCluster(rollout_fleet(1, 2, 4), (4, 4), random.Random(1))
    assert step_to(cluster, rollout_plan({}, classes={})) == RolloutStep(complete=True)


# Drains


def test_a_drain_waits_for_the_table_then_the_routers_then_their_requests() -> None:
    cluster = started()
    step = cluster.look(JOINED, RULES)
    old = cluster.index
    cluster.execute(step.commands)
    cluster.index = old | {"slots": [slot | {"state": "serving", "weightMilli": 1000} for slot in old["slots"]]}
    assert step_to(cluster, JOINED).waiting_for.startswith("a table without slot-")
    cluster.look(JOINED, RULES)
    assert step_to(cluster, JOINED).waiting_for == "router router-0 to have the table"
    cluster.tables = dict.fromkeys(cluster.tables, cluster.index)
    slot = next(iter(step.draining))
    cluster.in_flight["router-1"][slot] = 2
    assert step_to(cluster, JOINED).waiting_for.startswith("2 requests on demo-tp2-")
    cluster.in_flight["router-1"][slot] = 0
    (command,) = step_to(cluster, JOINED).commands
    assert isinstance(command, ScaleSet)
    assert (command.before, command.replicas) == (2, 1)


def test_requests_that_outlast_the_drain_timeout_are_left_to_the_engines_own_end() -> None:
    cluster = started()
    draining(cluster, JOINED)
    cluster.tables = dict.fromkeys(cluster.tables, cluster.index)
    slot = next(slot["slot"] for slot in cluster.index["slots"] if slot["weightMilli"] == 0)
    cluster.in_flight["router-0"][slot] = 1
    cluster.now += RULES.drain_timeout_seconds
    assert isinstance(step_to(cluster, JOINED).commands[0], ScaleSet)


SILENT: dict[str, tuple[int, int | None, str]] = {
    "before the timeout it is waited for": (10, 0, "router router-1 to have the table"),
    "after it an idle engine decides": (600, 0, ""),
    "after it a busy engine stops the step": (600, 3, "router-1 does not have the table, and .* runs 3 requests"),
    "after it an unknown engine stops the step": (600, None, "does not say what it runs"),
}


@pytest.mark.parametrize(("seconds", "running", "words"), SILENT.values(), ids=SILENT.keys())
def test_of_a_silent_router(seconds: int, running: int | None, words: str) -> None:
    cluster = started()
    name = draining(cluster, JOINED)
    cluster.tables["router-0"] = cluster.index
    cluster.silent.add("router-1")
    cluster.now += seconds
    step = step_to(cluster, JOINED, engines={} if running is None else engine(cluster, name, running))
    if not words:
        assert isinstance(step.commands[0], ScaleSet)
    else:
        assert re.search(words, said(step))
        assert step.commands == ()
    unconfirmed = step.refusal is not None and step.refusal.reason is ConditionReason.DRAIN_UNCONFIRMED
    assert unconfirmed == ("and" in words or "what" in words)


def test_a_router_that_nobody_has_asked_yet_is_waited_for_and_is_not_silent() -> None:
    cluster = started()
    draining(cluster, JOINED)
    cluster.now += 600
    seen = cluster.snapshot()
    pods = replace(seen.cluster, pods=(*seen.cluster.pods, router_pod("router-0")))
    step = plan_rollout(replace(seen, cluster=pods, measured=Measured()), JOINED, cluster.index, RULES)
    assert (step.commands, step.waiting_for, step.refusal) == ((), "router router-0 to be asked", None)


def test_while_a_step_is_held_only_drains_that_had_begun_are_in_the_table() -> None:
    cluster = started()
    first = cluster.look(JOINED, RULES)
    assert first.draining == first.begins != frozenset()
    assert first.held.draining == frozenset()
    cluster.execute(first.commands)
    second = cluster.look(JOINED, RULES)
    assert (second.held.draining, second.begins) == (first.draining, frozenset())


def test_without_routers_the_engine_alone_is_asked() -> None:
    cluster = started(routers=())
    name = draining(cluster, JOINED)
    assert step_to(cluster, JOINED, engines=engine(cluster, name, 1)).waiting_for == f"1 requests on {name}"
    assert isinstance(step_to(cluster, JOINED, engines=engine(cluster, name, 0)).commands[0], ScaleSet)


def test_a_drain_that_lost_its_reason_is_undone() -> None:
    cluster = started()
    name = draining(cluster, JOINED)
    step = step_to(cluster, SPLIT)
    (command,) = step.commands
    assert isinstance(command, StopDrain)
    assert (command.pod.name, step.draining) == (name, frozenset())


# What does not come, or is lost


def unready(cluster: SimulatedCluster, reason: str) -> None:
    """The groups of four GPUs never get ready."""
    for item in cluster.pods.values():
        if item["metadata"]["labels"]["kvplan.dev/configuration"] == "tp4":
            waiting = {"restartCount": 4, "state": {"waiting": {"reason": reason}}}
            item["status"] = {"phase": "Running", "conditions": [], "containerStatuses": [waiting]}


def crash_looping() -> SimulatedCluster:
    cluster = started(rollout_plan({"tp2": ["n0", "n0"]}))
    cluster.execute(cluster.look(JOINED, RULES).commands)
    cluster.settle()
    unready(cluster, "CrashLoopBackOff")
    return cluster


def test_a_group_that_crashes_is_waited_for_and_named() -> None:
    step = step_to(crash_looping(), JOINED)
    assert step.waiting_for.endswith("to be Ready (CrashLoopBackOff, 4 restarts)")
    assert step.refusal is None


def test_a_group_that_is_not_ready_by_the_deadline_stalls() -> None:
    cluster = crash_looping()
    cluster.now += RULES.deadline_seconds
    refusal = step_to(cluster, JOINED).refusal
    assert refusal is not None
    assert (refusal.reason, refusal.stalled) == (ConditionReason.DEADLINE_EXCEEDED, True)


def test_another_plan_takes_a_group_that_crashes_away_without_a_drain() -> None:
    step = step_to(crash_looping(), rollout_plan({"tp2": ["n0", "n0"]}))
    (command,) = step.commands
    assert isinstance(command, ScaleSet)
    assert command.replicas == 0


def lose_node(cluster: SimulatedCluster) -> None:
    cluster.nodes = cluster.nodes[:1]


def node_not_ready(cluster: SimulatedCluster) -> None:
    cluster.nodes[1]["status"]["conditions"][0]["status"] = "Unknown"


def cordon(cluster: SimulatedCluster) -> None:
    cluster.nodes[1]["spec"]["unschedulable"] = True


LOST: dict[str, tuple[Callable[[SimulatedCluster], None], type]] = {
    "a node that is gone: at once": (lose_node, ScaleSet),
    "a node that is not Ready: at once": (node_not_ready, ScaleSet),
    "a cordoned node: drained": (cordon, StartDrain),
}


@pytest.mark.parametrize(("happens", "command"), LOST.values(), ids=LOST.keys())
def test_groups_leave(happens: Callable[[SimulatedCluster], None], command: type) -> None:
    cluster = started()
    happens(cluster)
    step = step_to(cluster, rollout_plan({"tp2": ["n0", "n0"]}))
    assert [type(found) for found in step.commands] == [command]


def test_a_plan_for_a_cordoned_node_waits_for_the_next_plan() -> None:
    cluster = started(rollout_plan({"tp2": ["n0", "n0"]}))
    cordon(cluster)
    refusal = step_to(cluster, JOINED).refusal
    assert refusal is not None
    assert (refusal.reason, refusal.stalled) == (ConditionReason.INVENTORY_CHANGED, False)
    assert "node n1 takes no new groups now" in refusal.message


def test_gpus_that_others_hold_are_named() -> None:
    cluster = started(rollout_plan({"tp2": ["n0", "n0"]}))
    cluster.pods["foreign"] = pod("foreign", "n1", 1, labels={"kvplan.dev/set": ""})
    assert "tp4 on n1: pods that the plan does not move hold its GPUs" in said(step_to(cluster, JOINED))


def test_a_group_counts_once_it_is_in_the_table() -> None:
    cluster = started()
    cluster.index = cluster.index | {"slots": []}
    assert step_to(cluster, JOINED).waiting_for.endswith("to be in the table")


def test_a_set_whose_pods_never_came_shrinks_at_once() -> None:
    cluster = started(rollout_plan({"tp2": ["n0", "n0"]}))
    cluster.execute(cluster.look(JOINED, RULES).commands)
    (command,) = step_to(cluster, rollout_plan({"tp2": ["n0", "n0"]})).commands
    assert isinstance(command, ScaleSet)


# Files of flags


def test_a_file_is_written_before_its_set_and_deleted_after_it() -> None:
    made = rollout_fleet(1, 2, 4, engine={"templateRef": {"name": "engine"}, "writeMode": "ConfigFile"})
    cluster = SimulatedCluster(made, (4,), random.Random(1))
    first, second = (rollout_plan({"tp4": ["n0"]}, flags={"tp4": {"max-num-seqs": n}}) for n in ("8", "16"))
    step = cluster.look(first, RULES)
    assert [type(command) for command in step.commands] == [CreateConfig, CreateSet]
    for plan in (first, second):
        while not (step := cluster.look(plan, replace(RULES, min_available_milli=0))).complete:
            cluster.execute(step.commands)
            cluster.settle()
        cluster.before = plan
        assert len(cluster.files) == len(cluster.sets) == 1
    assert cluster.log[-1].startswith("delete ConfigMap demo-engine-")


# Order


def test_a_circle_is_broken_at_the_class_that_is_cheapest_to_lose() -> None:
    dear, cheap = request_class("dear"), request_class("cheap", costs={"rejectionWeight": 1})
    before = rollout_plan(
        {"tp2-a": ["n0", "n0"], "tp2-b": ["n1", "n1"]}, classes={"dear": ["tp2-a"], "cheap": ["tp2-b"]}
    )
    after = rollout_plan(
        {"tp2-a": ["n1", "n1"], "tp2-b": ["n0", "n0"]}, classes={"dear": ["tp2-a"], "cheap": ["tp2-b"]}
    )
    made = rollout_fleet(configurations=[configuration("tp2-a", 2), configuration("tp2-b", 2)])
    cluster = SimulatedCluster(made, (4, 4), random.Random(1), classes=(dear, cheap))
    for _ in range(3):
        cluster.execute(cluster.look(before, RULES).commands)
        cluster.settle()
    cluster.before = before
    (command,) = cluster.look(after, RULES).commands
    assert isinstance(command, StartDrain)
    assert command.pod.name.startswith("demo-tp2-b-")


# Adopted Deployments


def test_an_adopted_deployment_is_patched_and_left_to_roll() -> None:
    snapshot, plan = adopting(replicas=3, updated=3)
    (command,) = plan_rollout(snapshot, plan, None, RULES).commands
    assert isinstance(command, PatchAdopted)
    snapshot, plan = adopting(replicas=3, updated=1)
    assert plan_rollout(snapshot, plan, None, RULES).waiting_for == "Deployment chat to replace its pods"


def test_an_adopted_deployment_keeps_its_floor() -> None:
    snapshot, plan = adopting(replicas=3, updated=3)
    refusal = plan_rollout(snapshot, plan, None, replace(RULES, min_available_milli=900)).refusal
    assert refusal is not None
    assert refusal.reason is ConditionReason.NO_CAPACITY_NEUTRAL_PATH


def test_an_adopted_deployment_grows_by_one_first_where_no_pod_can_be_missed() -> None:
    snapshot, plan = adopting(replicas=4, updated=3)
    (command,) = plan_rollout(snapshot, plan, None, replace(RULES, min_available_milli=900)).commands
    assert isinstance(command, ScaleSet)
    assert (command.before, command.replicas) == (3, 4)


def test_replicas_of_an_autoscaler_are_left_alone_and_said() -> None:
    scaler = {"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "chat"}}}
    snapshot, plan = adopting(replicas=4, updated=3, autoscalers=(scaler,))
    step = plan_rollout(snapshot, plan, None, RULES)
    assert [type(command) for command in step.commands] == [PatchAdopted]
    assert step.notes == ("Deployment chat: An autoscaler owns replicas; kvplan leaves them.",)


def test_a_plan_in_force_is_read_off_its_condition() -> None:
    snapshot, plan = adopting(replicas=3, updated=3)
    small = in_force(rollout_plan({"tp2": ["?"]}, deployments={"tp2": "chat"}))
    step = plan_rollout(replace(snapshot, plans=(small,)), plan, None, replace(RULES, min_available_milli=900))
    assert [type(command) for command in step.commands] == [PatchAdopted]
