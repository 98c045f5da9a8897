"""A fleet that does not parse: it says so, keeps the rest of its status, and stops nobody else."""

import asyncio
from typing import Any, cast

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.kube.client import Client
from kvplan_operator.reconcile.our_kinds import OurObjects
from kvplan_operator.reconcile.unreadable import unreadable_status
from kvplan_operator.reconcile.world import World
from tests.planning import configuration, fleet


def raw(name: str, **spec: Any) -> dict[str, Any]:
    item = cast(dict[str, Any], fleet().to_wire())
    item["metadata"] |= {"name": name, "resourceVersion": "1", "generation": 3}
    return item | {"spec": item["spec"] | spec}


def world(*fleets: dict[str, Any]) -> World:
    """A world with these fleets."""
    found = {("default", item["metadata"]["name"]): item for item in fleets}

    async def made() -> World:
        return World(cast(Client, None), (), OurObjects(lambda: found, dict, dict), lambda *_: None)

    return asyncio.run(made())


def test_only_the_fleet_itself_is_left_out() -> None:
    seen = world(raw("good"), raw("odd", fromTheFuture=1))
    assert [item.metadata.name for item in seen.fleets_of("default")] == ["good"]
    assert seen.fleet(("default", "odd")) is None
    assert seen.unreadable(("default", "good")) is None
    assert seen.unreadable(("default", "gone")) is None
    found = seen.unreadable(("default", "odd"))
    assert found is not None
    assert "ServingFleet default/odd: spec.fromTheFuture is 1" in found[1]


def test_the_conditions_are_set_and_the_rest_of_the_status_stays() -> None:
    item = raw("odd") | {"status": {"later": {"kept": True}, "conditions": [{"type": "Odd", "level": 9}]}}
    status = unreadable_status(item, "why", 1_800_000_000.0)
    assert status["later"] == {"kept": True}
    said = {c["type"]: (c["status"], c["reason"], c["message"], c["observedGeneration"]) for c in status["conditions"]}
    assert said == {
        "Ready": ("False", "InputsRefused", "why", 3),
        "Reconciling": ("False", "InputsRefused", "why", 3),
        "Stalled": ("True", "InputsRefused", "why", 3),
    }
    again = unreadable_status(item | {"status": status}, "why", 1_900_000_000.0)
    assert again == status


def test_the_later_of_two_fleets_that_adopt_a_deployment_knows_of_the_first() -> None:
    adopting = [configuration("tp2", 2, deployment="chat")]
    seen = world(*(raw(name, configurations=adopting) for name in ("a", "b", "c")))
    taken = {name: seen._adopted_before(cast(ServingFleet, seen.fleet(("default", name)))) for name in ("a", "b", "c")}
    assert taken == {"a": {}, "b": {"chat": "a"}, "c": {"chat": "a"}}
