"""The operator in situations that are rare and legal: each test states what must hold there."""

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from kvplan_operator.act import world
from kvplan_operator.act.commands import CreateSet, ScaleSet
from kvplan_operator.act.manifests import Renderer
from kvplan_operator.act.refusals import RolloutRefused
from kvplan_operator.act.rollout import plan_rollout
from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.fleet_enums import PolicyMode
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.gate.verdict import Refusal
from kvplan_operator.gate.window import window_open
from kvplan_operator.kube.answers import Object
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.errors import NotFound
from kvplan_operator.kube.pods import project_pod
from kvplan_operator.kube.reflector import Key
from kvplan_operator.kube.resources import CONFIG_MAPS, DEPLOYMENTS, REQUEST_CLASSES, SERVING_FLEETS
from kvplan_operator.logs import FleetLog
from kvplan_operator.model import observed
from kvplan_operator.model.inventory import ExcludedGpus, ExclusionReason, Inventory, inventory_from_objects
from kvplan_operator.model.pods import requested_gpus
from kvplan_operator.model.snapshot import ClusterView, Fact, Measured, Quality, RouterState
from kvplan_operator.observe.measure import Sources
from kvplan_operator.plan.choice import Choice, Standing
from kvplan_operator.plan.digest import plan_digest
from kvplan_operator.plan.judged import Judged
from kvplan_operator.plan.standing import Shelf
from kvplan_operator.reconcile import measuring
from kvplan_operator.reconcile.deciding import Decided, decide
from kvplan_operator.reconcile.figures import gpu_figures
from kvplan_operator.reconcile.fleet_task import Again, FleetTask
from kvplan_operator.reconcile.ground import Ground
from kvplan_operator.reconcile.memory import Memory
from kvplan_operator.reconcile.named_objects import NamedObjects
from kvplan_operator.reconcile.our_kinds import OurObjects
from kvplan_operator.reconcile.relevance import relevant
from kvplan_operator.reconcile.shelving import Plans
from kvplan_operator.reconcile.world import World
from kvplan_operator.route.publish import collectable
from kvplan_operator.route.published import published
from kvplan_operator.route.slots import SlotState
from kvplan_operator.settings import TickSettings
from kvplan_operator.status.ready import Situation, readiness
from kvplan_operator.status.said import Progress
from tests.gating import FRESH, judged
from tests.looks import Lab
from tests.planning import fleet, node, pod, request_class
from tests.rollout_scenes import JOINED, SPLIT, started
from tests.rollouts import RULES, in_force, pod_template, rollout_fleet, rollout_plan
from tests.routing import Shelf as Table
from tests.routing import engine, router_pod, snapshot, state
from tests.simulated_cluster import SimulatedCluster

# Drains and slots


def decided_for(cluster: SimulatedCluster, **spec: Any) -> Decided:
    """One decision about JOINED, in force after SPLIT, under another spec of the fleet."""
    seen = cluster.snapshot()
    made = rollout_fleet(1, 2, 4, planPolicy={"mode": "Auto"}, **spec)
    before, digest = in_force(SPLIT), plan_digest(JOINED.spec)
    seen = replace(seen, fleet=made, plans=(before, JOINED))
    shelf = Shelf({plan_digest(SPLIT.spec): before, digest: JOINED}, current=digest)
    inventory = inventory_from_objects(seen.cluster.nodes, seen.cluster.pods, made)
    ground = Ground(FRESH, inventory, None, None, "", "0" * 64, "")
    return decide(seen, ground, Plans(shelf, {digest: Judged(JOINED, digest, 1.0)}), cluster.index)


HELD: dict[str, dict[str, Any]] = {
    "a suspended fleet": {"suspend": True},
    "a fleet without restarts left": {"replan": {"maxRestartsPerHour": 0}},
}


@pytest.mark.parametrize("spec", HELD.values(), ids=HELD.keys())
def test_no_slot_leaves_the_table_for_a_drain_that_the_gate_holds_back_in(spec: Mapping[str, Any]) -> None:
    decided = decided_for(started(), **spec)
    assert decided.step is not None
    assert not decided.may_act
    assert not decided.step.draining


def test_a_drain_waits_for_live_routers_that_nobody_has_asked_yet() -> None:
    cluster = started()
    cluster.execute(cluster.look(JOINED, RULES).commands)
    cluster.look(JOINED, RULES)
    seen = cluster.snapshot()
    pods = (*seen.cluster.pods, router_pod("router-0"))
    restarted = replace(seen, measured=Measured(), cluster=replace(seen.cluster, pods=pods))
    step = plan_rollout(restarted, JOINED, cluster.index, RULES)
    assert not any(isinstance(command, ScaleSet) for command in step.commands)


def test_a_drain_waits_for_no_router_that_gets_no_requests_yet() -> None:
    cluster = started()
    cluster.execute(cluster.look(JOINED, RULES).commands)
    cluster.look(JOINED, RULES)
    seen = cluster.snapshot()
    pods = (*seen.cluster.pods, router_pod("new", ready=False))
    silent = {"new": Fact[RouterState](None, Quality.NO_DATA, "router new", seen.now, "it starts")}
    measured = replace(seen.measured, routers={**seen.measured.routers, **silent})
    looked = replace(seen, measured=measured, cluster=replace(seen.cluster, pods=pods))
    assert plan_rollout(looked, JOINED, cluster.index, RULES) == plan_rollout(seen, JOINED, cluster.index, RULES)


def test_what_was_stopped_comes_back_though_another_node_of_the_plan_is_lost() -> None:
    plan = rollout_plan({"tp2": ["n0", "n0"], "tp4": ["n1"], "tp1": ["n2"]})
    cluster = SimulatedCluster(rollout_fleet(1, 2, 4), (4, 4, 4), random.Random(1))
    begun = rollout_plan({"tp2": ["n0", "n0"], "tp1": ["n2"]})
    for _ in range(3):
        cluster.execute(cluster.look(begun, RULES).commands)
        cluster.settle()
    seen = cluster.snapshot()
    nodes = tuple({**item, "spec": {"unschedulable": item["metadata"]["name"] == "n2"}} for item in seen.cluster.nodes)
    made = rollout_fleet(1, 2, 4, planPolicy={"mode": "Auto"})
    digest = plan_digest(plan.spec)
    seen = replace(seen, fleet=made, plans=(plan,), cluster=replace(seen.cluster, nodes=nodes))
    ground = Ground(FRESH, inventory_from_objects(nodes, seen.cluster.pods, made), None, None, "", "0" * 64, "")
    shelf = Shelf({digest: plan}, current=digest)
    decided = decide(seen, ground, Plans(shelf, {digest: Judged(plan, digest, 1.0)}), cluster.index)
    assert decided.step is not None
    assert any(isinstance(command, CreateSet) for command in decided.step.commands)
    assert decided.verdict is None or decided.verdict.refusal is None, decided.verdict
    assert decided.may_act


def serving(lab: Lab) -> set[str]:
    """Addresses that the published table sends requests to."""
    published_now = published({i["metadata"]["name"]: i for i in lab.store.of(CONFIG_MAPS)}, "demo")
    assert published_now is not None
    return {slot.address for slot in published_now.slots if slot.state is SlotState.SERVING}


def with_pods(lab: Lab, *pods: Object) -> None:
    """The fleet's pods from now on."""
    view = type(lab.seen).view

    async def seen(of: ServingFleet, classes: tuple[RequestClass, ...]) -> ClusterView:
        return replace(await view(lab.seen, of, classes), pods=pods)

    lab.seen.view = seen  # type: ignore[method-assign,assignment]


def a_class_is_added(lab: Lab) -> None:
    item = request_class("later").to_wire()
    lab.store.put(REQUEST_CLASSES, {name: part for name, part in item.items() if name != "status"})


def a_class_is_deleted(lab: Lab) -> None:
    del lab.store.objects[REQUEST_CLASSES.plural, "default", "code"]


def every_node_is_cordoned(lab: Lab) -> None:
    lab.seen.nodes = (node("a", 4, spec={"unschedulable": True}), node("b", 4, spec={"unschedulable": True}))


CHANGES = {
    "a class was added": a_class_is_added,
    "a class was deleted": a_class_is_deleted,
    "every node was cordoned": every_node_is_cordoned,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_the_table_follows_the_pods_after(change: Callable[[Lab], None], monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: Any) -> Measured:
        return Measured()

    for look in ("measure", "look_at_pods"):
        monkeypatch.setattr(measuring, look, nothing)

    async def scenario() -> None:
        lab = Lab()
        await lab.look(3)
        lab.accept(lab.candidate)
        with_pods(lab, engine("one", "tp1", ip="10.0.0.1"), engine("two", "tp1", ip="10.0.0.2"))
        await lab.look(3)
        assert serving(lab) == {"10.0.0.1:8000", "10.0.0.2:8000"}
        change(lab)
        await lab.look(3)
        with_pods(lab, engine("two", "tp1", ip="10.0.0.2"), engine("three", "tp1", ip="10.0.0.3"))
        await lab.look(3)
        assert serving(lab) == {"10.0.0.2:8000", "10.0.0.3:8000"}

    asyncio.run(scenario())


# Other people's objects


def an_empty_world(**ours: Any) -> World:
    async def made() -> World:
        objects: dict[str, dict[Key, Object]] = {"fleets": {}, "classes": {}, "plans": {}} | ours
        return World(cast(Client, None), (), OurObjects(*(lambda k=k: objects[k] for k in objects)), lambda *_: None)

    return asyncio.run(made())


@pytest.mark.parametrize("namespace", ["default", "elsewhere"])
def test_a_pod_of_somebody_else_that_asks_for_a_thousand_gpus_stops_no_fleet(namespace: str) -> None:
    greedy = pod("greedy", "", metadata={"namespace": namespace})
    greedy["spec"]["containers"][0]["resources"] = {"requests": {"nvidia.com/gpu": "1k"}}  # as the API server says 1000
    nodes, pods = relevant(fleet(), (node(),), {(namespace, "greedy"): project_pod(greedy)})
    assert inventory_from_objects(nodes, pods, fleet()).gpus == 8


def test_an_object_of_a_later_version_stops_only_what_it_is_about() -> None:
    good, odd = request_class("good").to_wire(), request_class("odd").to_wire()
    stamped = {
        ("default", name): {**item, "metadata": {**cast(Any, item["metadata"]), "resourceVersion": "1"}}
        for name, item in (("good", good), ("odd", {**odd, "spec": {**cast(Any, odd["spec"]), "fromTheFuture": 1}}))
    }
    seen = an_empty_world(classes=stamped)
    assert [c.metadata.name for c in seen.classes_in("default")] == ["good"]


def test_a_config_map_with_lengths_is_never_taken_for_a_shard() -> None:
    table = Table()
    index = table.found()
    lengths = {
        "metadata": {"name": "demo-table-lengths", "namespace": "default", "creationTimestamp": "2025-01-01T00:00:00Z"},
        "data": {"lengths.csv": "1"},
    }
    found = published({**table.objects, "demo-table-lengths": lengths}, "demo", index)
    assert found is not None
    assert "demo-table-lengths" not in collectable(found, 2e9)


def test_a_config_map_of_somebody_else_under_the_name_of_the_index_is_left_alone() -> None:
    async def scenario() -> None:
        lab = Lab()
        lab.store.put(CONFIG_MAPS, {"metadata": {"name": "demo-table"}, "data": {"menu": "soup"}})
        await lab.look(3)
        assert lab.store.objects[CONFIG_MAPS.plural, "default", "demo-table"]["data"] == {"menu": "soup"}

    asyncio.run(scenario())


def test_a_fleet_whose_deletion_no_watch_told_of_gets_no_objects_any_more() -> None:
    async def scenario() -> None:
        lab = Lab()
        await lab.look(3)
        ghost = lab.seen.fleet(("default", "demo"))
        lab.store.objects.clear()
        lab.seen.fleet = lambda _: ghost  # type: ignore[method-assign,assignment]
        apply = lab.store.apply

        async def refusing(resource: Any, document: Any, **rest: Any) -> Object:
            if resource is SERVING_FLEETS:
                raise NotFound("demo")
            return await apply(resource, document, **rest)

        lab.store.apply = refusing  # type: ignore[method-assign]
        written = len(lab.store.writes)
        await lab.look(4)
        assert not [write for write in lab.store.writes[written:] if write[0] == "create"]

    asyncio.run(scenario())


def test_two_fleets_do_not_grow_into_the_same_gpus() -> None:
    first = SimulatedCluster(rollout_fleet(4), (4,), random.Random(1))
    plan = rollout_plan({"tp4": ["n0"]})
    first.execute(first.look(plan, RULES).commands)
    (promised,) = first.sets.values()
    promised["metadata"]["labels"]["kvplan.dev/fleet"] = "other"
    seen = first.snapshot()
    deployments = tuple(first.sets.values())
    step = plan_rollout(replace(seen, cluster=replace(seen.cluster, deployments=deployments)), plan, None, RULES)
    assert not any(isinstance(command, CreateSet) for command in step.commands)


# Templates and Deployments


def test_a_template_whose_other_containers_hold_gpus_is_refused_or_counted() -> None:
    sidecar = {"name": "sidecar", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    template = pod_template()
    template["template"]["spec"]["containers"].append(sidecar)
    plan, made = rollout_plan({"tp1": ["n0"]}), rollout_fleet(1)
    try:
        (target,) = Renderer(made, plan.metadata.name, template, False).sets(
            plan.spec.groups[0], made.spec.configurations[0], (("n0",),)
        )
    except RolloutRefused:
        return
    assert target.gpus_per_pod == requested_gpus(target.manifest["spec"]["template"], "nvidia.com/gpu")


# Scale


def test_a_look_goes_through_all_pods_of_the_cluster_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(*parts: Any) -> Inventory:
        read.append("inventory")
        return inventory_from_objects(*parts)

    for module in (world, observed):
        monkeypatch.setattr(module, "inventory_from_objects", counted)

    async def scenario() -> None:
        lab = Lab()
        await lab.look(3)
        lab.accept(lab.candidate)
        await lab.look(3)
        read.clear()
        await lab.looks.tick()

    asyncio.run(scenario())
    assert read == ["inventory"]


def test_a_status_holds_what_is_left_out_of_a_large_pool_of_nodes() -> None:
    cordoned = tuple(ExcludedGpus(f"n{number}", 8, ExclusionReason.CORDONED) for number in range(600))
    assert gpu_figures(Inventory((), cordoned), ()).allocatable == 4_800


# Clocks, tasks, conditions


def test_an_object_that_is_read_while_its_namespace_changes_is_read_again() -> None:
    class Slow:
        def __init__(self) -> None:
            self.asked, self.may = 0, asyncio.Event()

        async def find(self, *_: Any) -> Object:
            self.asked += 1
            await self.may.wait()
            return {"metadata": {"name": "chat"}}

    async def scenario() -> None:
        slow = Slow()
        named = NamedObjects(cast(Client, slow))
        reading = asyncio.create_task(named.get(DEPLOYMENTS, "default", "chat"))
        await asyncio.sleep(0)
        named.forget("default")
        slow.may.set()
        await reading
        await named.get(DEPLOYMENTS, "default", "chat")
        assert slow.asked == 2

    asyncio.run(scenario())


def test_measurements_go_on_when_the_wall_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    async def measure(*parts: Any) -> Measured:
        asked.append(parts[4])
        return Measured()

    monkeypatch.setattr(measuring, "measure", measure)

    async def scenario() -> None:
        memory, taking = Memory(FleetLog("default/demo")), measuring.Measuring(cast(Sources, None), lambda: None)
        for now in (10_000.0, 6_400.0, 6_500.0, 6_600.0):
            await taking.refresh(fleet(), (), ClusterView(), memory, now, moving=True)
            await asyncio.sleep(0)
        assert len(asked) == 4

    asyncio.run(scenario())


def test_a_cancelled_inner_task_does_not_end_the_fleets_own() -> None:
    async def scenario() -> None:
        looks, twice = 0, asyncio.Event()

        async def tick() -> Again:
            nonlocal looks
            looks += 1
            if looks == 1:
                inner = asyncio.ensure_future(asyncio.sleep(60))
                inner.cancel()
                await asyncio.wait([inner])
                inner.result()
            twice.set()
            return Again()

        quick = TickSettings(spacing_seconds=0.001, backoff_seconds=0.001)
        life = asyncio.create_task(FleetTask(tick, quick, FleetLog("a/b"), random.Random(1)).run())
        await asyncio.wait([life, asyncio.ensure_future(twice.wait())], return_when=asyncio.FIRST_COMPLETED)
        assert twice.is_set()
        life.cancel()

    asyncio.run(scenario())


def test_a_window_in_a_zone_that_is_a_continent_is_a_refusal_and_no_crash() -> None:
    wanted = {"rollout": {"window": {"start": "01:00", "durationSeconds": 3600, "timeZone": "Europe"}}}
    refusal = window_open(judged(spec=wanted))
    assert refusal is not None
    assert refusal.stalled


@pytest.mark.parametrize("mode", [PolicyMode.DRY_RUN, PolicyMode.APPROVE])
def test_a_stalled_fleet_is_never_ready(mode: PolicyMode) -> None:
    reason = ConditionReason.PROPOSED_ONLY if mode is PolicyMode.DRY_RUN else ConditionReason.AWAITING_APPROVAL
    stuck = Refusal(ConditionType.ROLLOUT_COMPLETE, ConditionReason.DEADLINE_EXCEEDED, "", stalled=True)
    waits = Refusal(ConditionType.PLAN_ACCEPTED, reason, "")
    choice = Choice("d", Standing.IN_FORCE, False, ConditionStatus.FALSE, reason, "")
    at = Situation(mode, False, None, choice, refusal=waits, progress=Progress(refusal=stuck), candidate=True)
    ready, _, stalled = readiness(at)
    assert (ready.status, stalled.status) != (ConditionStatus.TRUE, ConditionStatus.TRUE)


def test_a_fleet_that_only_a_person_can_move_on_is_not_looked_at_every_other_second() -> None:
    async def scenario() -> None:
        lab = Lab()
        await lab.look(3)
        lab.accept(lab.candidate)
        await lab.look(4)
        lab.change(suspend=True)
        again = await lab.look(3)
        assert again.within_seconds is None

    asyncio.run(scenario())


def test_a_generation_that_a_router_made_up_is_not_followed() -> None:
    table = Table()
    table.round(snapshot([engine("one")]))
    epoch = table.found().epoch
    lying = {"router-0": state("router-0", (epoch, 2**53 - 1))}  # the largest that a report may name
    table.round(snapshot([engine("two"), router_pod("router-0")], routers=lying))
    assert [slot.pod_name for slot in table.found().slots] == ["two"]
