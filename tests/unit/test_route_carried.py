"""Rounds of routing while the plan in force cannot be assessed: what follows the cluster, and what stays."""

from typing import Any

from kvplan_operator.model.snapshot import EngineState, Snapshot
from kvplan_operator.route.carried import can_be_carried, carried_table
from kvplan_operator.route.cycle import TableDecision
from tests.planning import demo, request_class
from tests.routing import Shelf, a_fleet, engine, router_pod, running, said, snapshot, state

CLASSES = (request_class("chat"), request_class("code"))


def look(shelf: Shelf, pods: list[Any] | None = None, **parts: Any) -> Snapshot:
    """The plan's groups and a router that has the index in force."""
    everyone = [*(running() if pods is None else pods), router_pod("router-a")]
    return snapshot(everyone, routers={"router-a": state("router-a", shelf.found().order)}, **parts)


def planned_shelf() -> Shelf:
    """A published plan with keys."""
    shelf = Shelf()
    shelf.round(look(shelf), demo())
    shelf.round(look(shelf), demo())
    return shelf


def carried(shelf: Shelf, at: Snapshot, draining: frozenset[str] = frozenset()) -> TableDecision:
    """A round, written."""
    decision = carried_table(at, demo().plan, draining, shelf.found())
    if decision.publication is not None:
        shelf.write(decision.publication)
    return decision


def test_nothing_is_written_where_nothing_changed() -> None:
    shelf = planned_shelf()
    decision = carried(shelf, look(shelf))
    assert decision.publication is None
    assert decision.document == shelf.found().document
    assert [(c.type.value, c.status.value) for c in decision.conditions] == [("TableFresh", "True")]


def test_an_engine_that_holds_less_than_planned_gets_a_smaller_budget() -> None:
    shelf, planned, pod = planned_shelf(), demo().plan.spec.groups[0], running()[0]
    short = EngineState(planned.kv_capacity_tokens - 1_000, 0, 0)
    carried(shelf, look(shelf, engines={pod["metadata"]["uid"]: said(short)}))
    budgets = {slot.pod_name: slot.budget_tokens for slot in shelf.found().slots}
    assert budgets[pod["metadata"]["name"]] == planned.budget_tokens - 1_000


def test_pods_and_drains_are_followed_and_routes_and_keys_stay() -> None:
    shelf = planned_shelf()
    before = shelf.found().document
    assert before is not None
    assert before["inline"]["keys"]
    first, *others = running()
    new = engine("new", first["metadata"]["labels"]["kvplan.dev/configuration"], ip="10.9.9.9")
    drained = next(s.name for s in shelf.found().slots if s.pod_name == others[0]["metadata"]["name"])
    decision = carried(shelf, look(shelf, [new, *others]), frozenset({drained}))
    slots = {slot.pod_name: (slot.address, slot.state.value) for slot in shelf.found().slots if slot.pod_name}
    assert slots["new"] == ("10.9.9.9:8000", "serving")
    assert slots[others[0]["metadata"]["name"]][1] == "draining"
    assert first["metadata"]["name"] not in slots
    after = shelf.found().document
    assert after is not None
    assert (after["mode"], after["planDigest"]) == (before["mode"], before["planDigest"])
    assert (after["classes"], after["inline"], after["top"]) == (before["classes"], before["inline"], before["top"])
    assert decision.acknowledgement is not None
    assert not decision.acknowledgement.everyone


def test_a_new_class_is_counted_and_sent_nowhere_special_and_one_that_went_is_left_out() -> None:
    shelf = planned_shelf()
    before = {c["name"]: c for c in (shelf.found().document or {})["classes"]}
    carried(shelf, look(shelf, classes=(CLASSES[0], request_class("later"))))
    after = {c["name"]: c for c in (shelf.found().document or {})["classes"]}
    assert set(after) == {"chat", "later"}
    assert after["chat"] == before["chat"]
    assert after["later"]["routes"] == []


def test_keys_that_the_spec_no_longer_wants_have_no_home() -> None:
    shelf = planned_shelf()
    carried(shelf, look(shelf, of=a_fleet(routing={"affinity": "Off"})))
    assert (shelf.found().document or {})["inline"]["keys"] == {}


def test_only_an_index_with_a_plan_is_carried_on() -> None:
    shelf = Shelf()
    assert not can_be_carried(look(shelf), shelf.found())
    shelf.round(look(shelf))
    assert not can_be_carried(look(shelf), shelf.found())
    shelf.round(look(shelf), demo())
    assert can_be_carried(look(shelf), shelf.found())
    assert not can_be_carried(look(shelf, of=a_fleet(routing={"mode": "Observe"})), shelf.found())
