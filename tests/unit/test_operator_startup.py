"""What the operator says about a cluster that is not ready for it; the API server is played."""

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, cast

import pytest

from kvplan_operator.kube.client import Client
from kvplan_operator.kube.errors import NotServed, Refused, Unavailable
from kvplan_operator.kube.resources import LEADER_WORKER_SETS, ROUTING_PLANS, Resource
from kvplan_operator.reconcile.startup import NEEDS, ClusterNotReady, wait_until_ready
from kvplan_operator.settings import StartSettings
from tests.simulated_time import run

AT_ONCE = StartSettings(patience_seconds=0, retry_seconds=1)


class Played:
    """Answers as an API server would.

    Attributes:
        unserved: kinds that it does not know.
        denied: (verb, plural) that are not allowed.
        asked: attributes of every review.
    """

    def __init__(
        self, unserved: Collection[Resource] = (LEADER_WORKER_SETS,), denied: Collection[tuple[str, str]] = ()
    ) -> None:
        self.unserved, self.denied = set(unserved), set(denied)
        self.asked: list[Mapping[str, str]] = []

    async def find(self, resource: Resource, _namespace: str, _name: str) -> None:
        if resource in self.unserved:
            raise NotServed(f"{resource.title} is not served")
        if ("get", resource.plural) in self.denied:
            raise Refused("forbidden")

    async def create(self, _: Resource, document: Mapping[str, Any]) -> dict[str, Any]:
        wanted = document["spec"]["resourceAttributes"]
        self.asked.append(wanted)
        return {"status": {"allowed": (wanted["verb"], wanted["resource"]) not in self.denied}}


def wait(played: Any, settings: StartSettings = AT_ONCE, namespaces: tuple[str, ...] = ("team",)) -> float:
    """Wait for a played cluster; gives back when that ended, in simulated seconds."""

    async def life() -> float:
        await wait_until_ready(cast(Client, played), namespaces, "ops", settings)
        return asyncio.get_running_loop().time()

    return run(life())


def test_a_cluster_with_everything_is_ready_at_once() -> None:
    assert wait(Played()) == 0


def test_a_missing_crd_is_named() -> None:
    with pytest.raises(ClusterNotReady, match=r"CRD routingplans.kvplan.dev is missing"):
        wait(Played(unserved=(ROUTING_PLANS, LEADER_WORKER_SETS)))


def test_each_missing_verb_is_named_with_its_place() -> None:
    with pytest.raises(ClusterNotReady) as refused:
        wait(Played(denied=[("watch", "pods"), ("create", "leases")]))
    lines = str(refused.value).splitlines()
    assert [line.partition(" is missing")[0] for line in lines] == [
        "permission to watch pods in the whole cluster",
        "permission to create leases.coordination.k8s.io in namespace ops",
    ]


def test_who_may_not_read_a_kind_is_told_of_the_permission_and_not_of_a_missing_crd() -> None:
    with pytest.raises(ClusterNotReady) as refused:
        wait(Played(denied=[("get", "servingfleets")]))
    assert str(refused.value).startswith("permission to get servingfleets.kvplan.dev in namespace team")


def test_worker_sets_are_asked_for_only_where_they_are_served() -> None:
    without, with_them = Played(), Played(unserved=())
    wait(without)
    wait(with_them)
    assert LEADER_WORKER_SETS.plural not in {asked["resource"] for asked in without.asked}
    assert LEADER_WORKER_SETS.plural in {asked["resource"] for asked in with_them.asked}


def test_cluster_wide_permissions_are_asked_for_without_a_namespace() -> None:
    played = Played()
    wait(played, namespaces=())
    assert {asked.get("namespace") for asked in played.asked if asked["resource"] != "leases"} == {None}
    assert len(played.asked) >= sum(len(need.verbs) for need in NEEDS)


def test_what_is_missing_is_waited_for_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    class Repaired(Played):
        async def find(self, resource: Resource, _namespace: str, _name: str) -> None:
            if asyncio.get_running_loop().time() >= 20:
                self.unserved.discard(ROUTING_PLANS)
            await super().find(resource, _namespace, _name)

    played = Repaired(unserved=(ROUTING_PLANS, LEADER_WORKER_SETS))
    assert wait(played, StartSettings(patience_seconds=1e9, retry_seconds=5)) == 20
    assert [record.getMessage().partition(":")[0] for record in caplog.records if record.name == "kvplan.startup"] == [
        "CRD routingplans.kvplan.dev is missing"
    ]


def test_an_api_server_that_does_not_answer_is_told_in_its_own_words() -> None:
    class Silent(Played):
        async def find(self, _resource: Resource, _namespace: str, _name: str) -> None:
            raise Unavailable("list servingfleets: connection refused")

    with pytest.raises(ClusterNotReady, match="connection refused"):
        wait(Silent())
