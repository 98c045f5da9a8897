"""What the gate judges is read from objects: windows in local time, restarts, flips, load times, lost GPUs."""

from dataclasses import replace
from typing import Any

import pytest

from kvplan_operator.api.labels import RESTARTED_ANNOTATION, SET_BACK_ANNOTATION
from kvplan_operator.gate.gate_input import Gain
from kvplan_operator.gate.gather import gate_input
from kvplan_operator.gate.history import USUAL_LOAD_SECONDS, history_of, instants, with_instants
from kvplan_operator.gate.window import window_open
from kvplan_operator.model.instants import instant
from kvplan_operator.model.inventory import ExcludedGpus, ExclusionReason, Inventory
from kvplan_operator.model.snapshot import ClusterView, Measured, Snapshot
from kvplan_operator.plan.choice import choose
from kvplan_operator.plan.judged import Judged
from kvplan_operator.plan.solve_due import INVENTORY_ANNOTATION, inventory_digest
from kvplan_operator.plan.standing import shelf_of
from tests.gating import FRESH, judged
from tests.planning import inventory, own_pod, pod
from tests.routing_plans import NOW, digest_of, fleet_with, group, in_force_since, plan_of, served_until

Object = dict[str, Any]
OLD = in_force_since(plan_of((group(nodes=("a",)),)), NOW - 5_000)
NEW = plan_of((group("tp2", ("a", "b")),))


def window(start: str, hours: int, days: tuple[str, ...] = (), zone: str = "Etc/UTC") -> Object:
    return {"days": list(days), "start": start, "durationSeconds": 3600 * hours, "timeZone": zone}


WINDOWS: dict[str, tuple[Object, str, bool]] = {
    "it opens on the minute": (window("17:00", 1), "2030-03-17T17:00:00Z", True),
    "it closes on the minute": (window("17:00", 1), "2030-03-17T18:00:00Z", False),
    "it reaches past midnight": (window("23:00", 4, ("Saturday",)), "2030-03-17T02:59:00Z", True),
    "past midnight counts the day it opened on": (window("23:00", 4, ("Sunday",)), "2030-03-17T02:00:00Z", False),
    "days are local to its zone": (window("01:00", 1, ("Monday",), "Asia/Tokyo"), "2030-03-17T16:30:00Z", True),
    "winter time is one hour": (window("03:00", 1, (), "Europe/Berlin"), "2030-03-30T02:30:00Z", True),
    "summer time is another": (window("03:00", 1, (), "Europe/Berlin"), "2030-04-01T01:30:00Z", True),
    "no days are every day": (window("00:00", 24), "2030-03-20T12:00:00Z", True),
}


@pytest.mark.parametrize("sentence", WINDOWS)
def test_window(sentence: str) -> None:
    wanted, now, is_open = WINDOWS[sentence]
    asked = judged(now=instant(now), spec={"rollout": {"window": wanted}})
    assert (window_open(asked) is None) is is_open


def test_a_window_in_a_zone_that_does_not_exist_asks_for_another() -> None:
    refusal = window_open(judged(spec={"rollout": {"window": window("01:00", 1, (), "Mars/Olympus")}}))
    assert refusal is not None
    assert refusal.stalled
    assert (
        refusal.message == "rollout.window.timeZone is 'Mars/Olympus': use a name of the tz database, such as Etc/UTC"
    )


def snapshot(*, pods: tuple[Object, ...] = (), deployments: tuple[Object, ...] = (), **parts: Any) -> Snapshot:
    cluster = ClusterView(pods=pods, deployments=deployments)
    return Snapshot(
        NOW, parts.get("fleet", fleet_with(OLD, NEW)), "7", (), parts.get("plans", (OLD, NEW)), cluster, Measured()
    )


def deployment(**annotations: str) -> Object:
    names = {"restarted": RESTARTED_ANNOTATION, "set_back": SET_BACK_ANNOTATION}
    return {"metadata": {"name": "d", "annotations": {names[key]: value for key, value in annotations.items()}}}


def ready_pod(name: str, seconds: int, restarts: int = 0) -> Object:
    moments = {"PodScheduled": "2030-03-17T12:00:00Z", "Ready": f"2030-03-17T12:0{seconds // 60}:{seconds % 60:02d}Z"}
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": at} for kind, at in moments.items()]
    plain = own_pod(name)
    status = {"conditions": conditions, "containerStatuses": [{"restartCount": restarts}]}
    return plain | {"status": plain["status"] | status}


def test_restarts_and_flips_are_counted_over_all_deployments() -> None:
    noted = (
        deployment(restarted="2030-03-17T17:00:00Z,2030-03-17T16:50:00Z"),
        deployment(restarted="2030-03-17T16:55:00Z", set_back="2030-03-17T17:40:00Z"),
        deployment(restarted="yesterday,,"),
        {"metadata": {"name": "without"}},
    )
    found = history_of(snapshot(deployments=noted), OLD)
    assert found.restarts == tuple(instant(f"2030-03-17T{at}:00Z") for at in ("16:50", "16:55", "17:00"))
    assert found.set_back == (instant("2030-03-17T17:40:00Z"),)


def test_a_time_that_stands_on_two_sets_is_one_restart_and_one_that_stands_twice_on_a_set_is_two() -> None:
    moved = deployment(restarted="2030-03-17T16:50:00Z,2030-03-17T17:00:00Z,2030-03-17T17:00:00Z")
    going = deployment(restarted="2030-03-17T16:50:00Z")
    cluster = ClusterView(deployments=(moved,), worker_sets=(going,))
    found = history_of(replace(snapshot(), cluster=cluster), OLD)
    assert found.restarts == tuple(instant(f"2030-03-17T{at}:00Z") for at in ("16:50", "17:00", "17:00"))


def test_the_partition_stands_since_it_was_applied() -> None:
    assert history_of(snapshot(), OLD).stands_since == NOW - 5_000
    assert history_of(snapshot(), NEW).stands_since is None
    assert history_of(snapshot(), None).stands_since is None


def test_the_slowest_group_seen_tells_how_long_a_model_loads() -> None:
    pods = (ready_pod("p", 90), ready_pod("q", 240), ready_pod("crashed", 500, restarts=3), pod("foreign"))
    assert history_of(snapshot(pods=pods), OLD).load_seconds == 240
    assert history_of(snapshot(pods=(own_pod("pending"),)), OLD).load_seconds == USUAL_LOAD_SECONDS


def test_a_list_of_times_forgets_what_no_check_looks_at() -> None:
    noted = with_instants("2030-03-17T16:00:00Z,2030-03-17T17:30:00Z,rubbish", (NOW,), NOW)
    assert noted == "2030-03-17T17:30:00Z,2030-03-17T17:46:40Z"
    for n in range(200):
        noted = with_instants(noted, (NOW + n,), NOW + n)
    assert len(list(instants(noted))) == 64
    assert max(instants(noted)) == NOW + 199


def test_the_gate_gets_everything_from_one_look() -> None:
    free = inventory(4, 4)
    stamped = plan_of((group("tp2", ("a", "b")),), annotations={INVENTORY_ANNOTATION: inventory_digest(free)})
    fleet = fleet_with(OLD, stamped)
    shelf = shelf_of(fleet, (OLD, stamped))
    today = {
        digest_of(OLD): Judged(OLD, digest_of(OLD), 300.0),
        digest_of(stamped): Judged(stamped, digest_of(stamped), 200.0),
    }
    choice = choose(fleet.spec.plan_policy.mode, shelf, today)
    found = gate_input(snapshot(fleet=fleet, plans=(OLD, stamped)), choice, shelf, today, free, FRESH)
    assert found is not None
    assert (found.digest, found.gain, found.problems) == (digest_of(stamped), Gain(300.0, 200.0), ())
    assert found.ground.planned == found.ground.today
    assert (found.cold, found.change.started, found.ground.lost) == (True, 2, ())
    assert found.history.stands_since == NOW - 5_000


AHEAD = {
    "a plan that is being put in force": (NEW, True),
    "a plan whose groups all run": (OLD, False),
    "a plan that returned": (served_until(NEW, NOW - 60), False),
}


@pytest.mark.parametrize("sentence", AHEAD)
def test_restarts_that_may_lie_ahead(sentence: str) -> None:
    plan, ahead = AHEAD[sentence]
    fleet = fleet_with(plan, accepted=digest_of(plan))
    shelf = shelf_of(fleet, (plan,))
    choice = choose(fleet.spec.plan_policy.mode, shelf, {})
    found = gate_input(snapshot(fleet=fleet, plans=(plan,)), choice, shelf, {}, inventory(4, 4), FRESH)
    assert found is not None
    assert found.unfinished is found.restarts is ahead


def test_without_a_plan_there_is_nothing_to_judge() -> None:
    fleet = fleet_with()
    shelf = shelf_of(fleet, ())
    choice = choose(fleet.spec.plan_policy.mode, shelf, {})
    assert gate_input(snapshot(fleet=fleet, plans=()), choice, shelf, {}, inventory(4), FRESH) is None


def test_a_node_that_lost_its_gpus_is_named_with_the_reason() -> None:
    fleet = fleet_with(OLD, NEW)
    shelf = shelf_of(fleet, (OLD, NEW))
    today = {digest_of(NEW): Judged(NEW, digest_of(NEW), 200.0)}
    choice = choose(fleet.spec.plan_policy.mode, shelf, today)
    left = Inventory(inventory(4, 1).nodes[:1], (ExcludedGpus("b", 1, ExclusionReason.CORDONED),))
    found = gate_input(snapshot(), choice, shelf, today, left, FRESH)
    assert found is not None
    assert found.ground.lost == ("node b offers 0 of the 2 GPUs that the plan places there (Cordoned)",)
