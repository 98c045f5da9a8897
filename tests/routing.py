"""Builders for tests of routing: pods, routers, key rates, snapshots, and a cluster that keeps what is written."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.model.snapshot import (
    ClusterView,
    Fact,
    KeyMeasured,
    Measured,
    Quality,
    RouterState,
    Snapshot,
)
from kvplan_operator.plan.planned import Planned
from kvplan_operator.route.cycle import TableDecision, next_table
from kvplan_operator.route.keys import KeyDecision
from kvplan_operator.route.objects import empty_index, index_object, shard_object
from kvplan_operator.route.publication import Publication
from kvplan_operator.route.publish import collectable
from kvplan_operator.route.published import Published, index_name, published
from tests.planning import demo, fleet, request_class

Object = dict[str, Any]

NOW = 1_760_000_000.0
CREATED = "2025-10-09T08:00:00Z"
CREATED_SECONDS = 1_759_996_800
FINGERPRINT = "72173bdf763ca064"


def engine(name: str, configuration: str = "tp1", *, ip: str = "10.0.0.1", ready: bool = True, **parts: Any) -> Object:
    """A pod of the fleet ``demo``; ``uid``, ``created``, ``terminating``, ``changed``, ``ports`` change it."""
    metadata: Object = {
        "name": name,
        "namespace": "default",
        "uid": parts.get("uid", f"uid-{name}"),
        "creationTimestamp": parts.get("created", CREATED),
        "labels": {"kvplan.dev/fleet": "demo", "kvplan.dev/configuration": configuration} | parts.get("labels", {}),
        "annotations": parts.get("annotations", {}),
    }
    if parts.get("terminating"):
        metadata["deletionTimestamp"] = CREATED
    ready_condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": parts.get("changed", CREATED)}
    return {
        "metadata": metadata,
        "spec": {"nodeName": "a", "containers": [{"name": "vllm", "ports": parts.get("ports", [])}]},
        "status": {"phase": parts.get("phase", "Running"), "podIP": ip, "conditions": [ready_condition]},
    }


def router_pod(name: str, *, ready: bool = True, terminating: bool = False) -> Object:
    """A router pod."""
    pod = engine(name, ready=ready, terminating=terminating)
    pod["metadata"]["labels"] = {"app.kubernetes.io/name": "kvplan-router"}
    return pod


def said(value: Any, quality: Quality = Quality.VALUE) -> Fact[Any]:
    """A fact of now."""
    return Fact(value, quality, "test", NOW)


def state(identity: str, order: tuple[int, int] = (0, 0), **parts: Any) -> Fact[RouterState]:
    """What a router reports."""
    plain: Object = {"mode": "plan" if order[1] else "none", "fingerprint": FINGERPRINT}
    return said(RouterState(identity=identity, epoch=order[0], generation=order[1], **(plain | parts)))


def keys(count: int = 40, class_name: str = "chat", scale: float = 1.0) -> Fact[tuple[KeyMeasured, ...]]:
    """Falling rates of keys with well-spread hashes."""
    return said(tuple(KeyMeasured(class_name, hashed(n), scale * 1.5 / (n + 1), 0.0005) for n in range(count)))


def hashed(number: int) -> int:
    """A 64-bit hash."""
    return int.from_bytes(hashlib.blake2b(str(number).encode(), digest_size=8).digest(), "big")


def a_fleet(**spec: Any) -> ServingFleet:
    """The fleet of ``demo()`` with a uid; ``routing`` is On, so that keys have homes, unless it says otherwise."""
    made = fleet(**({"routing": {"affinity": "On"}} | spec))
    return made.model_copy(update={"metadata": made.metadata.model_copy(update={"uid": "uid-demo"})})


def snapshot(
    pods: Iterable[Object] = (),
    *,
    now: float = NOW,
    of: ServingFleet | None = None,
    classes: Sequence[RequestClass] | None = None,
    routers: Mapping[str, Fact[RouterState]] | None = None,
    **measured: Any,
) -> Snapshot:
    """A look at the fleet ``demo``."""
    return Snapshot(
        now=now,
        fleet=of or a_fleet(),
        resource_version="1",
        classes=tuple(classes) if classes is not None else (request_class("chat"), request_class("code")),
        plans=(),
        cluster=ClusterView(pods=tuple(pods)),
        measured=Measured(**({"keys": keys()} | measured), routers=routers or {}),
    )


def running(planned: Planned | None = None) -> list[Object]:
    """One Ready pod for each group of a plan."""
    groups = (planned or demo()).plan.spec.groups
    return [
        engine(f"{g.configuration}-{'abcdefgh'[n]}", g.configuration, ip=f"10.0.{i}.{n}")
        for i, g in enumerate(groups)
        for n in range(g.replicas)
    ]


@dataclass
class Shelf:
    """A stand-in for the API server: keeps ConfigMaps as they are written, shards before the index."""

    of: ServingFleet = field(default_factory=a_fleet)
    objects: dict[str, Object] = field(default_factory=dict)
    created: str = CREATED
    writes: int = 0

    def found(self) -> Published:
        """What is there; the index object is created where it is missing."""
        name = index_name(self.of.metadata.name)
        if name not in self.objects:
            self.put(empty_index(self.of))
        there = published(self.objects, self.of.metadata.name)
        assert there is not None
        return there

    def put(self, document: Mapping[str, Any]) -> None:
        """Write one object."""
        self.writes += 1
        name = document["metadata"]["name"]
        metadata = {"uid": f"uid-{name}", "creationTimestamp": self.created}
        kept = self.objects.get(name, {"metadata": metadata})["metadata"]
        stamped = {"uid": kept["uid"], "creationTimestamp": kept["creationTimestamp"]}
        self.objects[name] = {
            **document,
            "metadata": {**document["metadata"], **stamped, "resourceVersion": str(self.writes)},
        }

    def write(self, publication: Publication) -> None:
        """Write a whole table."""
        before = self.found()
        for shard in publication.shards:
            self.put(shard_object(self.of, shard))
        self.put(index_object(self.of, publication, before))

    def collect(self, now: float) -> tuple[str, ...]:
        """Delete what nobody needs."""
        names = collectable(self.found(), now)
        for name in names:
            del self.objects[name]
        return names

    def round(
        self,
        look: Snapshot,
        planned: Planned | None = None,
        draining: Iterable[str] = (),
        recent: KeyDecision | None = None,
    ) -> TableDecision:
        """One round: decide and write."""
        decision = next_table(look, planned, frozenset(draining), self.found(), recent=recent)
        if decision.publication is not None:
            self.write(decision.publication)
        return decision
