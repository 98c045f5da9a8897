"""Which pod is which slot, and where requests reach it."""

from typing import Any

import pytest

from kvplan_operator.route.engine_pods import engine_pods
from kvplan_operator.route.slots import PlannedGroups, PublishedSlot, SlotState, next_slots
from tests.routing import a_fleet, engine

PLANNED = {"tp1": PlannedGroups(2, 1_000)}


def placed(*pods: dict[str, Any], before: tuple[PublishedSlot, ...] = (), **options: Any) -> tuple[PublishedSlot, ...]:
    return next_slots(before, engine_pods(pods, a_fleet()), options.pop("planned", PLANNED), **options)


def shown(slots: tuple[PublishedSlot, ...]) -> list[tuple[str, str, str]]:
    return [(slot.name, slot.pod_name, slot.state.value) for slot in slots]


def test_planned_slots_are_listed_before_there_are_pods() -> None:
    assert shown(placed()) == [("tp1-0", "", "gone"), ("tp1-1", "", "gone")]
    assert [slot.budget_tokens for slot in placed()] == [1_000, 1_000]


def test_the_oldest_pod_takes_the_lowest_number() -> None:
    young, old = engine("a", created="2025-10-09T09:00:00Z"), engine("b", created="2025-10-09T08:00:00Z")
    assert shown(placed(young, old)) == [("tp1-0", "b", "serving"), ("tp1-1", "a", "serving")]


def test_a_replacement_takes_the_place_of_the_pod_that_is_gone() -> None:
    first = placed(engine("a"), engine("b"))
    assert shown(placed(engine("b"), engine("c"), before=first)) == [
        ("tp1-0", "c", "serving"),
        ("tp1-1", "b", "serving"),
    ]


def test_a_replacement_takes_the_place_of_a_pod_on_its_way_out_rather_than_one_beyond_the_plan() -> None:
    first = placed(engine("a"), engine("b"))
    rolling = (engine("a", terminating=True), engine("b"), engine("c"))
    assert shown(placed(*rolling, before=first)) == [("tp1-0", "c", "serving"), ("tp1-1", "b", "serving")]


def test_pods_beyond_the_plan_have_slots_of_their_own_until_they_are_gone() -> None:
    slots = placed(engine("a"), engine("b"), engine("c"))
    assert [slot.name for slot in slots] == ["tp1-0", "tp1-1", "tp1-2"]
    assert [slot.name for slot in placed(engine("a"), before=slots)] == ["tp1-0", "tp1-1"]


def test_a_pod_that_goes_before_it_could_serve_gets_no_slot() -> None:
    pods = (engine("a"), engine("b"), engine("c"))
    assert shown(placed(*pods, unlisted={pods[1]["metadata"]["uid"]})) == [
        ("tp1-0", "a", "serving"),
        ("tp1-1", "c", "serving"),
    ]


def test_a_pod_that_has_a_slot_keeps_it_until_it_is_gone() -> None:
    pods = (engine("a"), engine("b"))
    first = placed(*pods)
    assert placed(*pods, before=first, unlisted={pods[0]["metadata"]["uid"]}) == first


def test_slots_that_keys_name_stay_listed() -> None:
    slots = placed(engine("a"), engine("b"), engine("c"))
    assert shown(placed(engine("a"), before=slots, named={"tp1-2"}))[-1] == ("tp1-2", "", "gone")


def test_a_pod_that_is_not_ready_keeps_its_slot_and_has_no_address() -> None:
    slot = placed(engine("a", ready=False))[0]
    assert (slot.state, slot.pod_name, slot.address) == (SlotState.GONE, "a", "")
    assert "address" not in slot.to_wire()


@pytest.mark.parametrize("options", [{"draining": {"tp1-0"}}, {}], ids=["told by the rollout", "its pod ends"])
def test_a_draining_slot_has_no_weight_and_keeps_its_address(options: dict[str, Any]) -> None:
    pod = engine("a", terminating=not options, ready=bool(options))
    before = (PublishedSlot("tp1-0", "tp1", SlotState.SERVING, 1_000, "uid-a", "a", "10.0.0.1:8000"),)
    wire = placed(pod, before=before, **options)[0].to_wire()
    assert (wire["state"], wire["weightMilli"], wire["address"]) == ("draining", 0, "10.0.0.1:8000")


def test_groups_that_a_new_plan_leaves_out_keep_their_budget() -> None:
    first = placed(engine("a"))
    kept = placed(engine("a"), before=first, planned={"tp2": PlannedGroups(1, 5_000)})
    assert [(slot.name, slot.budget_tokens) for slot in kept] == [("tp1-0", 1_000), ("tp2-0", 5_000)]


HTTP = [{"name": "metrics", "containerPort": 9000}, {"name": "http", "containerPort": 8080}]
ADDRESSES: dict[str, tuple[dict[str, Any], str]] = {
    "the port named http": ({"ports": HTTP, "annotations": {"prometheus.io/port": "7000"}}, "10.0.0.1:8080"),
    "the annotated port": ({"annotations": {"prometheus.io/port": "7000"}}, "10.0.0.1:7000"),
    "vLLM's own": ({}, "10.0.0.1:8000"),
    "vLLM's own where the annotation is no port": ({"annotations": {"prometheus.io/port": "no"}}, "10.0.0.1:8000"),
    "an IPv6 address in brackets": ({"ip": "fd00::1"}, "[fd00::1]:8000"),
    "none before there is an address": ({"ip": ""}, ""),
}


@pytest.mark.parametrize(("parts", "address"), ADDRESSES.values(), ids=ADDRESSES.keys())
def test_requests_go_to(parts: dict[str, Any], address: str) -> None:
    assert engine_pods([engine("a", **parts)], a_fleet())[0].address == address


LEFT_OUT: dict[str, dict[str, Any]] = {
    "has ended": {"phase": "Failed"},
    "belongs to another fleet": {"labels": {"kvplan.dev/fleet": "other"}},
    "is a worker behind a leader": {"labels": {"leaderworkerset.sigs.k8s.io/worker-index": "1"}},
    "has no uid yet": {"uid": ""},
}


@pytest.mark.parametrize("parts", LEFT_OUT.values(), ids=LEFT_OUT.keys())
def test_a_pod_is_no_destination_that(parts: dict[str, Any]) -> None:
    assert engine_pods([engine("a", **parts)], a_fleet()) == ()
