"""One round of routing after another, on what the cluster keeps: what is written, what is held, what people read."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kvplan_operator.model.snapshot import EngineState, KeyMeasured, Quality, Snapshot
from kvplan_operator.plan.planned import Planned
from kvplan_operator.route.conditions import ConditionValue
from kvplan_operator.route.cycle import TableDecision, next_table
from kvplan_operator.route.keys import KeyStep
from kvplan_operator.route.published import index_name
from kvplan_solver.cacheroute.gate import AffinityState
from kvplan_solver.cacheroute.install import InstallReason
from kvplan_solver.cacheroute.keys import fingerprint, weak_secret
from kvplan_solver.cacheroute.table import read_index
from tests.planning import demo, fleet, inputs, plan, request_class
from tests.routing import (
    CREATED_SECONDS,
    FINGERPRINT,
    NOW,
    Shelf,
    a_fleet,
    engine,
    hashed,
    keys,
    router_pod,
    running,
    said,
    snapshot,
    state,
)


def look(order: tuple[int, int] = (0, 0), pods: list[Any] | None = None, **parts: Any) -> Snapshot:
    """The plan's groups and one router that reports an index."""
    everyone = [*(running() if pods is None else pods), router_pod("router-a")]
    return snapshot(everyone, routers={"router-a": state("router-a", order)}, **parts)


def settled(shelf: Shelf) -> tuple[int, int]:
    """A published plan with keys, acknowledged."""
    shelf.round(look(), demo())
    return shelf.found().order


def conditions(decision: TableDecision) -> dict[str, tuple[str, str]]:
    return {c.type.value: (c.status.value, c.reason.value) for c in decision.conditions}


def homes(shelf: Shelf) -> dict[int, tuple[str, ...]]:
    table = shelf.found().table
    assert table is not None
    found = {hashed(n): table.lookup(hashed(n)) for n in range(40)}
    return {key: home.destinations for key, home in found.items() if home is not None}


def test_an_engine_that_holds_less_than_planned_gets_a_smaller_budget() -> None:
    shelf, planned = Shelf(), demo().plan.spec.groups[0]
    pod = running()[0]
    short = EngineState(planned.kv_capacity_tokens - 1_000, 0, 0)
    shelf.round(look(engines={pod["metadata"]["uid"]: said(short)}), demo())
    budgets = {slot.pod_name: slot.budget_tokens for slot in shelf.found().slots}
    assert budgets.pop(pod["metadata"]["name"]) == planned.budget_tokens - 1_000
    assert set(budgets.values()) <= {group.budget_tokens for group in demo().plan.spec.groups}


def test_without_a_plan_the_index_has_rules_and_grids_and_overrides_nothing() -> None:
    shelf = Shelf()
    document = shelf.round(look()).document
    assert document is not None
    assert document["mode"] == "observe"
    assert "planDigest" not in document
    assert [(c["name"], c["routes"]) for c in document["classes"]] == [("chat", []), ("code", [])]
    assert document["grids"]["promptTokens"]
    assert document["inline"]["keys"] == {}
    assert [slot["state"] for slot in document["slots"]] == ["serving", "serving"]
    assert document["epoch"] == CREATED_SECONDS


def test_a_plan_brings_policies_keys_and_its_digest() -> None:
    shelf = Shelf()
    shelf.round(look())
    decision = shelf.round(look(), demo())
    document = read_index(shelf.objects[index_name("demo")]["data"]["index.json"]).document
    assert decision.document == document
    assert (document["mode"], document["generation"]) == ("plan", 2)
    assert document["planDigest"].startswith(demo().plan.metadata.name[-10:])
    assert [c["routes"] for c in document["classes"]] == [
        [r.to_wire() for r in c.routes] for c in demo().plan.spec.classes
    ]
    assert homes(shelf)
    assert document["routers"] == [{"identity": "router-a", "shareMilli": 1000}]


def test_nothing_is_written_at_rest_whatever_the_noise() -> None:
    shelf = Shelf()
    order = settled(shelf)
    writes = shelf.writes
    random = np.random.default_rng(1)
    for step in range(1, 40):
        noisy = said(
            tuple(
                replace(k, requests_per_second=k.requests_per_second * random.uniform(0.95, 1.05))
                for k in keys().value or ()
            )
        )
        decision = shelf.round(look(order, now=NOW + 30 * step, keys=noisy), demo())
        assert decision.publication is None
        assert conditions(decision)["TableFresh"] == ("True", "TableAcknowledged")
    assert shelf.writes == writes


def test_a_new_leader_goes_on_from_what_is_published() -> None:
    shelf = Shelf()
    order = settled(shelf)
    before = homes(shelf)
    shifted = look(order, now=NOW + 60, keys=keys(scale=1.02))
    first, second = (next_table(shifted, demo(), frozenset(), shelf.found()) for _ in range(2))
    assert first.publication is None
    assert second.keys is not None
    assert second.keys.verdict == (first.keys.verdict if first.keys else None)
    assert homes(shelf) == before


def test_an_empty_answer_keeps_the_table_and_says_so() -> None:
    shelf = Shelf()
    order = settled(shelf)
    before = homes(shelf)
    decision = shelf.round(look(order, now=NOW + 60, keys=said(())), demo())
    assert decision.publication is None
    assert conditions(decision)["TableFresh"] == ("False", "RatesUnavailable")
    assert homes(shelf) == before


MISSING: dict[str, Any] = {
    "nobody measured": None,
    "the answer is old": replace(keys(), quality=Quality.STALE),
    "all rates are NaN": said((KeyMeasured("chat", 1, float("nan"), 0.0),)),
}


@pytest.mark.parametrize("answer", MISSING.values(), ids=MISSING.keys())
def test_the_table_is_never_emptied_where(answer: Any) -> None:
    shelf = Shelf()
    order = settled(shelf)
    before = homes(shelf)
    gone = look(order, [running()[0]], now=NOW + 60, keys=answer)
    decision = shelf.round(gone, demo())
    assert homes(shelf) == before
    assert decision.document is not None
    assert [slot["state"] for slot in decision.document["slots"]] == ["serving", "gone"]


def test_keys_leave_a_destination_that_is_gone_at_once() -> None:
    shelf = Shelf()
    order = settled(shelf)
    decision = shelf.round(look(order, [running()[0]], now=NOW + 1), demo())
    assert decision.keys is not None
    assert decision.keys.verdict is not None
    assert decision.keys.verdict.reason is InstallReason.DESTINATION_GONE
    assert {slot for home in homes(shelf).values() for slot in home} == {"tp1-0"}


def test_a_pod_that_just_stopped_being_ready_keeps_its_keys_for_a_minute() -> None:
    shelf = Shelf()
    order = settled(shelf)
    before = homes(shelf)
    pods = running()
    pods[1] = engine("tp1-b", ip="10.0.0.1", ready=False, changed="2025-10-09T08:53:20Z")
    shelf.round(look(order, pods, now=NOW + 30), demo())
    assert homes(shelf) == before
    shelf.round(look(order, pods, now=NOW + 70), demo())
    assert {slot for home in homes(shelf).values() for slot in home} == {"tp1-0"}


def test_a_draining_slot_has_no_weight_and_no_keys() -> None:
    shelf = Shelf()
    order = settled(shelf)
    document = shelf.round(look(order, now=NOW + 1), demo(), draining={"tp1-1"}).document
    assert document is not None
    assert [(s["state"], s["weightMilli"]) for s in document["slots"]] == [("serving", 1000), ("draining", 0)]
    assert {slot for home in homes(shelf).values() for slot in home} == {"tp1-0"}


def test_a_decision_of_this_interval_stands_unless_a_slot_of_its_keys_changed() -> None:
    shelf = Shelf()
    first = shelf.round(look(), demo())
    order = shelf.found().order
    drift = keys(scale=3.0)
    again = shelf.round(look(order, now=NOW + 5, keys=drift), demo(), recent=first.keys)
    assert again.publication is None
    assert again.keys is not None
    assert (again.keys.step, again.keys.verdict) == (KeyStep.HOLD, first.keys.verdict if first.keys else None)
    gone = shelf.round(look(order, [running()[0]], now=NOW + 6), demo(), recent=again.keys)
    assert gone.keys is not None
    assert gone.keys.step is KeyStep.INSTALL


def test_a_suspended_fleet_holds_its_keys_and_still_follows_its_pods() -> None:
    shelf = Shelf()
    order = settled(shelf)
    suspended = a_fleet(suspend=True)
    decision = shelf.round(look(order, now=NOW + 90, keys=keys(80, scale=2.0), of=suspended), demo())
    assert decision.keys is not None
    assert decision.keys.step is KeyStep.HOLD
    gone = shelf.round(look(order, [running()[0]], now=NOW + 91, of=suspended), demo())
    assert gone.keys is not None
    assert gone.keys.step is KeyStep.INSTALL


def test_an_altered_index_is_written_again_as_a_later_generation() -> None:
    shelf = Shelf()
    generation = settled(shelf)[1]
    data = shelf.objects[index_name("demo")]["data"]
    data["index.json"] = data["index.json"].replace('"weightMilli": 1000', '"weightMilli": 1')
    decision = shelf.round(look((CREATED_SECONDS, generation), now=NOW + 5), demo())
    assert decision.publication is not None
    assert decision.publication.generation > generation
    assert "the index was altered and is written again" in decision.notes[0]
    assert homes(shelf)


def test_a_deleted_index_comes_back_in_a_later_epoch() -> None:
    shelf = Shelf()
    order = settled(shelf)
    shelf.objects.clear()
    shelf.created = "2025-10-09T09:00:00Z"
    shelf.round(look(order, now=NOW + 5), demo())
    assert shelf.found().order > order
    assert homes(shelf)


def test_a_shard_that_someone_deleted_is_written_again() -> None:
    shelf = Shelf()
    roomy = a_fleet(routing={"affinity": "On", "warmSlotsPerDestination": 4_000})
    planned = replace(demo(), problem=replace(demo().problem, fleet=roomy))
    many = said(tuple(KeyMeasured("chat", hashed(n), 0.001, 0.0) for n in range(6_000)))
    shelf.round(look(keys=many), planned)
    (name,) = shelf.found().named_shards
    del shelf.objects[name]
    assert shelf.found().table is None
    decision = shelf.round(look(shelf.found().order, now=NOW + 60, keys=many), planned)
    assert shelf.found().table is not None
    assert decision.publication is not None
    assert {shard.name for shard in decision.publication.shards} == {name}


def test_shards_that_are_no_longer_named_go_after_the_grace_time() -> None:
    shelf = Shelf()
    roomy = a_fleet(routing={"affinity": "On", "warmSlotsPerDestination": 4_000})
    planned = replace(demo(), problem=replace(demo().problem, fleet=roomy))
    for step in range(3):
        hot = tuple(KeyMeasured("chat", hashed(10_000 + 100 * step + n), 0.02, 0.0) for n in range(100))
        many = said((*(KeyMeasured("chat", hashed(n), 0.0003, 0.0) for n in range(6_000)), *hot))
        shelf.round(look(shelf.found().order, now=NOW + 100 * step, keys=many), planned)
    assert len(shelf.found().shards) == 3
    assert shelf.collect(NOW + 350) == ()
    assert len(shelf.collect(NOW + 450)) == 1
    assert len(shelf.collect(NOW + 550)) == 1
    assert set(shelf.found().shards) == shelf.found().named_shards


def test_another_secret_empties_the_table_until_its_keys_have_rates() -> None:
    shelf = Shelf()
    order = settled(shelf)
    other = {"router-a": state("router-a", order, fingerprint="0123456789abcdef")}
    rotated = snapshot([*running(), router_pod("router-a")], routers=other, now=NOW + 60, keys=said(()))
    document = shelf.round(rotated, demo()).document
    assert document is not None
    assert document["hash"]["fingerprint"] == "0123456789abcdef"
    assert document["inline"]["keys"] == {}


def test_a_missing_secret_is_said() -> None:
    weak = fingerprint(weak_secret("uid-demo"))
    shelf = Shelf()
    shelf.round(snapshot([*running(), router_pod("router-a")]), demo())
    order = shelf.found().order
    known = {"router-a": state("router-a", order, fingerprint=weak)}
    decision = shelf.round(snapshot([*running(), router_pod("router-a")], routers=known), demo())
    assert decision.document is not None
    assert decision.document["hash"]["fingerprint"] == weak
    assert conditions(decision)["TableFresh"] == ("True", "WeakKeySecret")


def test_a_class_newer_than_the_plan_is_recognised_and_not_routed() -> None:
    classes = (request_class("chat"), request_class("code"), request_class("later", priority=9))
    shelf = Shelf()
    document = shelf.round(look(classes=classes), demo()).document
    assert document is not None
    assert [(c["name"], bool(c["routes"])) for c in document["classes"]] == [
        ("later", False),
        ("chat", True),
        ("code", True),
    ]


MODES: dict[str, tuple[dict[str, Any], str, tuple[str, str]]] = {
    "the spec says Observe": ({"mode": "Observe", "affinity": "On"}, "observe", ("False", "SwitchedOff")),
    "the spec switches affinity off": ({"affinity": "Off"}, "plan", ("False", "SwitchedOff")),
    "the spec switches affinity on": ({"affinity": "On"}, "plan", ("True", "AsPlanned")),
    "nobody measured reuse": ({"affinity": "Auto"}, "plan", ("Unknown", "GainUnknown")),
}


@pytest.mark.parametrize(("routing", "mode", "affinity"), MODES.values(), ids=MODES.keys())
def test_mode_and_affinity_where(routing: dict[str, Any], mode: str, affinity: tuple[str, str]) -> None:
    shelf = Shelf()
    decision = shelf.round(look(of=a_fleet(routing=routing)), demo())
    assert decision.document is not None
    assert decision.document["mode"] == mode
    assert conditions(decision)["AffinityEnabled"] == affinity
    assert bool(decision.document["inline"]["keys"]) == (affinity[0] == "True")


def test_off_publishes_nothing_and_withdraws() -> None:
    decision = next_table(look(of=a_fleet(routing={"mode": "Off"})), demo(), frozenset(), Shelf().found())
    assert decision.withdraw
    assert decision.publication is None
    assert set(conditions(decision).values()) == {("False", "SwitchedOff")}


AUTO = a_fleet(routing={"affinity": "Auto"})


def gate(shelf: Shelf, reuse_gap: Any) -> tuple[AffinityState, str, int]:
    """What a round says and how many keys are then in force."""
    decision = shelf.round(look(shelf.found().order, of=AUTO, reuse_gap=reuse_gap, now=NOW), demo())
    assert decision.affinity is not None
    assert decision.document is not None
    keys_in_force = len(decision.document["inline"]["keys"])
    return decision.affinity.state, conditions(decision)["AffinityEnabled"][0], keys_in_force


def test_the_gate_has_hysteresis_and_a_missing_measurement_does_not_switch_off() -> None:
    shelf = Shelf()
    # Two destinations, each key back once within the eviction window: a flat balancer misses half of it.
    assert gate(shelf, None) == (AffinityState.UNKNOWN, "Unknown", 0)
    assert gate(shelf, said(((15.0,), (1e9,))))[:2] == (AffinityState.ON, "True")
    installed = len(homes(shelf))
    assert gate(shelf, None) == (AffinityState.ON, "True", installed)
    assert gate(shelf, said(((15.0,), (0.0,)))) == (AffinityState.ON, "True", installed)
    assert gate(shelf, said(((15.0, float("inf")), (1.0, 1.0)))) == (AffinityState.OFF, "False", 0)
    assert gate(shelf, None) == (AffinityState.OFF, "False", 0)


def test_the_fingerprint_is_what_most_routers_say() -> None:
    pods = [*running(), *(router_pod(f"r-{n}") for n in "abc")]
    said_by = {
        "r-a": state("r-a"),
        "r-b": state("r-b", fingerprint="0" * 16),
        "r-c": state("r-c"),
    }
    document = Shelf().round(snapshot(pods, routers=said_by), demo()).document
    assert document is not None
    assert document["hash"]["fingerprint"] == FINGERPRINT


def pending(decision: TableDecision) -> ConditionValue:
    return next(c for c in decision.conditions if c.type.value == "TableFresh")


def test_silent_and_late_routers_are_named() -> None:
    shelf = Shelf()
    order = settled(shelf)
    pods = [*running(), *(router_pod(f"router-{n}") for n in "abc"), router_pod("router-d", ready=False)]
    known = {
        "router-a": state("router-a", order),
        "router-b": state("router-b", (order[0], order[1] - 1), table_errors=2),
    }
    decision = shelf.round(snapshot(pods, routers=known), demo())
    assert decision.acknowledgement is not None
    assert decision.acknowledgement.silent == ("router-c",)
    assert "router-c is silent: check GET /state" in pending(decision).message
    assert "router-b is refusing indexes" in pending(decision).message
    assert "router-d" not in pending(decision).message


@pytest.fixture(scope="module")
def larger() -> Planned:
    """Another plan of the same fleet, with more groups."""
    return plan(inputs(fleet=fleet(nodes={"selector": {}, "minGpus": 4})))


def routed(decision: TableDecision) -> list[list[tuple[str, int]]]:
    document = decision.document
    assert document is not None
    return [[(r["configuration"], r["shareMilli"]) for r in c["routes"]] for c in document["classes"]]


def test_while_a_rollout_is_half_done_routes_and_keys_follow_the_groups_that_serve(larger: Planned) -> None:
    assert [(g.configuration, g.replicas) for g in larger.plan.spec.groups] == [("tp2", 2)]
    shelf = Shelf()
    order = settled(shelf)
    start = shelf.round(look(order, now=NOW + 1), larger)
    assert start.document is not None
    assert start.document["planDigest"].startswith(larger.plan.metadata.name[-10:])
    assert routed(start) == [[("tp1", 1000)]] * 2
    assert {slot for home in homes(shelf).values() for slot in home} == {"tp1-0", "tp1-1"}
    half = [running()[0], engine("tp2-a", "tp2", ip="10.0.1.0")]
    middle = shelf.round(look(order, half, now=NOW + 60), larger)
    assert routed(middle) == [[("tp1", 500), ("tp2", 500)]] * 2
    assert {slot for home in homes(shelf).values() for slot in home} == {"tp1-0", "tp2-0"}
    done = shelf.round(look(order, running(larger), now=NOW + 120), larger)
    assert routed(done) == [[("tp2", 1000)]] * 2
    assert {slot for home in homes(shelf).values() for slot in home} == {"tp2-0", "tp2-1"}
