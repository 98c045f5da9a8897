"""A cluster in memory for rollouts: controllers, scheduler, kubelets, routers and requests, one event at a time.

Inputs: nodes, a fleet, a template, a seeded source of chance. Outputs: Snapshots, and after every event the promises
that must hold. Unless told to count, the scheduler binds a pod where its affinity says whatever is free, so that what
keeps the ledger is the planner alone; routers see a new table late; terminating pods take their time. Nothing sleeps:
time is a number.
"""

import copy
import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from kvplan_operator.act.commands import (
    Command,
    CreateConfig,
    CreateSet,
    DeleteConfig,
    DeleteSet,
    KeepNotes,
    ScaleSet,
    StartDrain,
    StopDrain,
)
from kvplan_operator.act.ledger import ledger
from kvplan_operator.act.rollout import RolloutStep, plan_rollout
from kvplan_operator.act.world import RolloutRules
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.labels import DRAINING_ANNOTATION, REVISION_ANNOTATION, SET_LABEL
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.pods import requested_gpus
from kvplan_operator.model.snapshot import ClusterView, Fact, Measured, Quality, RouterState, Snapshot
from tests.planning import node
from tests.rollouts import in_force, pod_template, snapshot_of

Object = dict[str, Any]
GPU = "nvidia.com/gpu"


class SimulatedCluster:
    """Everything that is there, and what happens next."""

    def __init__(
        self,
        made: ServingFleet,
        gpus: Sequence[int],
        rng: random.Random,
        *,
        classes: Sequence[RequestClass] | None = None,
        routers: Sequence[str] = ("router-0", "router-1"),
        scheduler_counts: bool = False,
    ) -> None:
        self.fleet, self.rng, self.classes, self.now = made, rng, classes, 1_000.0
        self.nodes = [node(f"n{number}", size) for number, size in enumerate(gpus)]
        self.template = pod_template()
        self.sets: dict[str, Object] = {}
        self.files: dict[str, Object] = {}
        self.pods: dict[str, Object] = {}
        self.index: Object = {"epoch": 1, "generation": 1, "mode": "plan", "slots": []}
        self.tables = dict.fromkeys(routers, self.index)
        self.in_flight: dict[str, Counter[str]] = {name: Counter() for name in routers}
        self.silent: set[str] = set()
        self.scheduler_counts = scheduler_counts
        self.before: RoutingPlan | None = None
        self.log: list[str] = []
        self.undrained: list[str] = []
        self._counter = 0

    def snapshot(self, plans: Sequence[RoutingPlan] = ()) -> Snapshot:
        """What the operator sees now."""
        cluster = ClusterView(
            nodes=tuple(copy.deepcopy(self.nodes)),
            pods=tuple(copy.deepcopy(list(self.pods.values()))),
            deployments=tuple(copy.deepcopy(list(self.sets.values()))),
            template=self.template,
            config_maps=dict(self.files),
        )
        measured = Measured(routers={name: self._router(name) for name in self.tables})
        standing = () if self.before is None else (in_force(self.before),)
        return snapshot_of(
            self.fleet, cluster, now=self.now, plans=(*standing, *plans), classes=self.classes, measured=measured
        )

    def look(self, plan: RoutingPlan, rules: RolloutRules) -> RolloutStep:
        """The operator's next step; the table follows it."""
        step = plan_rollout(self.snapshot(), plan, self.index, rules)
        self.publish(step.draining, step.unlisted)
        return step

    def publish(self, draining: frozenset[str], unlisted: frozenset[str]) -> None:
        """The table as the operator's route part writes it: every pod keeps its slot; draining ones weigh nothing."""
        old = {slot["podUID"]: slot["slot"] for slot in self.index["slots"]}
        slots = []
        for pod in sorted(self.pods.values(), key=lambda pod: pod["metadata"]["uid"]):
            uid = pod["metadata"]["uid"]
            name = old.get(uid) or f"slot-{uid}"
            if uid in old or (is_ready(pod) and uid not in unlisted):
                gone = name in draining or "deletionTimestamp" in pod["metadata"]
                weight, state = (0, "draining") if gone else (1000, "serving")
                slots.append({"slot": name, "podUID": uid, "state": state, "weightMilli": weight})
        if slots != self.index["slots"]:
            self.index = self.index | {"generation": self.index["generation"] + 1, "slots": slots}

    def execute(self, commands: Sequence[Command], crash_after: int | None = None) -> None:
        """Carry out commands as the executor does: what changed since it was looked at stops them."""
        for number, command in enumerate(commands):
            if number == crash_after or not self._execute(command):
                return
            self.log.append(str(command))

    def happen(self) -> None:
        """One event of those that can happen now."""
        self.now += self.rng.choice((0.5, 2.0, 10.0))
        events = [self._controllers, self._bind, self._get_ready, self._end, self._read_table, self._serve]
        self.rng.choice(events)()

    def settle(self) -> None:
        """Every kind of event often enough for all that was begun to end."""
        for _ in range(6):
            for event in (self._controllers, self._bind, self._get_ready, self._end, self._read_table, self._serve):
                for _ in range(len(self.pods) + len(self.sets) + 2):
                    event()
        self.now += 1

    def overdrawn(self) -> tuple[str, ...]:
        """Nodes whose pods hold more GPUs than there are."""
        return ledger(self.nodes, self.pods.values(), GPU).overdrawn()

    def serving(self) -> Counter[str]:
        """Ready groups that are not draining, by configuration."""
        return Counter(
            pod["metadata"]["labels"]["kvplan.dev/configuration"]
            for pod in self.pods.values()
            if is_ready(pod) and DRAINING_ANNOTATION not in pod["metadata"]["annotations"]
        )

    def rendered(self) -> dict[str, Object]:
        """Specs of all sets by name."""
        return {name: copy.deepcopy(item["spec"]) for name, item in self.sets.items()}

    def edit(self, name: str) -> None:
        """A person changes the pod template of a set; its controller replaces the pods without asking anybody."""
        item = self.sets[name]
        item["spec"]["template"]["spec"]["priorityClassName"] = "by-hand"
        revision = int(item["metadata"]["annotations"][REVISION_ANNOTATION]) + 1
        item["metadata"]["annotations"][REVISION_ANNOTATION] = str(revision)
        self._touch(item)

    def evict(self, name: str) -> None:
        """A person deletes a pod."""
        self._terminate(self.pods[name])

    def _router(self, name: str) -> Fact[RouterState]:
        if name in self.silent:
            return Fact(None, Quality.NO_DATA, f"router {name}", self.now, "no answer")
        table = self.tables[name]
        state = RouterState(name, "plan", table["epoch"], table["generation"], "f" * 16, dict(self.in_flight[name]))
        return Fact(state, Quality.VALUE, f"router {name}", self.now)

    def _execute(self, command: Command) -> bool:
        match command:
            case CreateConfig():
                self.files.setdefault(command.manifest["metadata"]["name"], dict(command.manifest))
            case CreateSet():
                return self._create(command)
            case ScaleSet():
                return self._scale(command)
            case KeepNotes():
                item = self.sets[command.on.name]
                item["metadata"]["annotations"] |= command.notes
                self._touch(item)
            case StartDrain() | StopDrain():
                pod = self.pods.get(command.pod.name)
                if pod is None or pod["metadata"]["uid"] != command.pod.uid:
                    return False
                since = {DRAINING_ANNOTATION: str(command.since)} if isinstance(command, StartDrain) else {}
                pod["metadata"]["annotations"] = since
            case DeleteSet():
                del self.sets[command.on.name]
            case DeleteConfig():
                del self.files[command.on.name]
        return True

    def _create(self, command: CreateSet) -> bool:
        if command.target.name in self.sets:
            return False
        item = copy.deepcopy(dict(command.target.manifest))
        item["spec"]["replicas"] = command.replicas
        item["metadata"]["uid"] = self._next("d")
        item["metadata"]["annotations"][REVISION_ANNOTATION] = "1"
        self.sets[command.target.name] = item
        self._touch(item)
        return True

    def _scale(self, command: ScaleSet) -> bool:
        item = self.sets.get(command.on.name)
        if item is None or item["metadata"]["resourceVersion"] != command.on.resource_version:
            return False
        if command.leaving is not None and not self._stays(command.leaving.uid):
            return False
        item["spec"]["replicas"] = command.replicas
        item["metadata"]["annotations"] |= command.notes
        self._touch(item)
        return True

    def _touch(self, item: Object) -> None:
        item["metadata"]["resourceVersion"] = self._next("")

    def _next(self, kind: str) -> str:
        self._counter += 1
        return f"{kind}{self._counter:05d}"

    def _stays(self, uid: str) -> bool:
        found = [pod for pod in self.pods.values() if pod["metadata"]["uid"] == uid]
        return any("deletionTimestamp" not in pod["metadata"] for pod in found)

    def _in_a_table(self, pod: Object) -> bool:
        slots = [slot for table in self.tables.values() for slot in table["slots"] if slot["weightMilli"]]
        return any(slot["podUID"] == pod["metadata"]["uid"] for slot in slots)

    def _own(self, name: str) -> list[Object]:
        return [pod for pod in self.pods.values() if pod["metadata"]["labels"][SET_LABEL] == name]

    def _controllers(self) -> None:
        """One set makes or ends one pod."""
        for name, item in self._shuffled(self.sets.items()):
            active = [pod for pod in self._own(name) if "deletionTimestamp" not in pod["metadata"]]
            if len(active) < item["spec"]["replicas"]:
                self._make(name, item)
                return
            if len(active) > item["spec"]["replicas"]:
                chosen = min(self._shuffled(active), key=_end_order)
                if self._in_a_table(chosen) and DRAINING_ANNOTATION not in chosen["metadata"]["annotations"]:
                    self.undrained.append(chosen["metadata"]["name"])
                self._terminate(chosen)
                return

    def _make(self, name: str, item: Object) -> None:
        template, uid = item["spec"]["template"], self._next("p")
        metadata: Object = {
            "name": f"{name}-{uid}", "namespace": "default", "uid": uid, "annotations": {},
            "labels": dict(template["metadata"]["labels"]), "creationTimestamp": self._time(),
        }  # fmt: skip
        self.pods[metadata["name"]] = {
            "metadata": metadata, "spec": copy.deepcopy(template["spec"]), "status": {"phase": "Pending"},
        }  # fmt: skip

    def _terminate(self, pod: Object) -> None:
        slot = next((s["slot"] for s in self.index["slots"] if s["podUID"] == pod["metadata"]["uid"]), None)
        left = sum(counts[slot] for counts in self.in_flight.values()) if slot else 0
        self.log.append(f"end {pod['metadata']['name']} with {left} requests")
        pod["metadata"]["deletionTimestamp"] = self._time()

    def _bind(self) -> None:
        for pod in self._shuffled(self.pods.values()):
            if "nodeName" not in pod["spec"] and self._fits(pod):
                pod["spec"]["nodeName"] = _wanted_node(pod)
                return

    def _fits(self, pod: Object) -> bool:
        room = ledger(self.nodes, self.pods.values(), GPU)
        return not self.scheduler_counts or not room.missing({_wanted_node(pod): requested_gpus(pod, GPU)})

    def _get_ready(self) -> None:
        for pod in self._shuffled(self.pods.values()):
            if "nodeName" in pod["spec"] and not is_ready(pod) and "deletionTimestamp" not in pod["metadata"]:
                condition = {"type": "Ready", "status": "True", "lastTransitionTime": self._time()}
                pod["status"] = {"phase": "Running", "conditions": [condition]}
                return

    def _end(self) -> None:
        for name, pod in self._shuffled(self.pods.items()):
            if "deletionTimestamp" in pod["metadata"]:
                del self.pods[name]
                return

    def _read_table(self) -> None:
        """One router takes the newest table."""
        for name in self._shuffled(list(self.tables)):
            if name not in self.silent and self.tables[name] is not self.index:
                self.tables[name] = self.index
                return

    def _serve(self) -> None:
        """A router sends a request to a slot of its table, and another ends one."""
        for name, counts in self.in_flight.items():
            serving = [slot["slot"] for slot in self.tables[name]["slots"] if slot["weightMilli"]]
            if serving and self.rng.random() < 0.5:
                counts[self.rng.choice(serving)] += 1
            busy = sorted(slot for slot, requests in counts.items() if requests)
            for slot in busy:
                if self.rng.random() < 0.7:
                    counts[slot] -= 1

    def _time(self) -> str:
        return datetime.fromtimestamp(self.now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _shuffled(self, items: Any) -> list[Any]:
        found = list(items)
        self.rng.shuffle(found)
        return found


def is_ready(pod: Object) -> bool:
    """Whether the pod is Ready and stays."""
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", ()))
    return ready and "deletionTimestamp" not in pod["metadata"]


def _wanted_node(pod: Object) -> str:
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return str(required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])


def _end_order(pod: Object) -> tuple[bool, bool, bool]:
    """As a ReplicaSet ends pods; a draining pod has the least deletion cost."""
    annotations = pod["metadata"]["annotations"]
    return "nodeName" in pod["spec"], is_ready(pod), DRAINING_ANNOTATION not in annotations
