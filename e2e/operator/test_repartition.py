"""From one partition of all GPUs to another and back, by accepted digests, with the operator as a process.

Every GPU is in use: six groups of four against twelve groups of two. The operator is also killed after the first write
of each kind, on the way there and on the way back.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from e2e.harness.cluster import Cluster
from e2e.harness.readiness import until
from e2e.operator.operator_process import FLEET, SHORT_LEASE, Operator
from e2e.operator.pod_history import PodHistory

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_control_plane")]

GPUS_OF_A_NODE, ALL_GPUS, FLOOR_MILLI = 8, 24, 500
CONFIGURATIONS = {name: {"name": name, "tensorParallel": int(name[2:])} for name in ("tp1", "tp2", "tp4")}


@dataclass
class Scene:
    """A fleet with a plan in force and a second one that fits as well.

    Attributes:
        operator: at work.
        fours: digest of the plan of six groups of four GPUs, in force.
        twos: of the plan of twelve groups of two.
    """

    operator: Operator
    fours: str
    twos: str

    def accept(self, digest: str) -> None:
        """Accept a plan and return when it is in force."""
        self.operator.accept(digest)
        until(lambda: self.in_force == digest, "the plan in force", self.operator.process)
        self.operator.wait_for("Ready", "AsPlanned", seconds=300)

    @property
    def in_force(self) -> str:
        """Digest of the plan in force."""
        return str(self.operator.get("fleet", FLEET)["status"].get("currentPlan", {}).get("digest"))

    def specs(self) -> dict[str, Any]:
        """Rendered Deployments: what the fleet runs, without what the API server numbers."""
        return {
            item["metadata"]["name"]: {"labels": item["metadata"]["labels"], "spec": item["spec"]}
            for item in self.operator.get("deployments")["items"]
        }


@pytest.fixture
def scene(cluster: Cluster, namespace: str) -> Iterator[Scene]:
    """The fleet with its plan of fours in force; each plan was proposed while it was the only way."""
    operator = Operator(cluster, namespace, **SHORT_LEASE)
    operator.apply_sample()
    fours, twos = (proposed(operator, name) for name in ("tp4", "tp2"))
    operator.change({"configurations": list(CONFIGURATIONS.values())})
    found = Scene(operator, fours, twos)
    found.accept(fours)
    yield found
    operator.process.stop()


def proposed(operator: Operator, configuration: str) -> str:
    """Digest of the plan that is proposed where a configuration is all there is."""
    operator.change({"configurations": [CONFIGURATIONS[configuration]]})

    def made_of() -> set[str]:
        waiting = operator.get("fleet", FLEET).get("status", {}).get("candidatePlan")
        return set() if waiting is None else configurations(operator.get("rplan", waiting["name"]))

    until(lambda: made_of() == {configuration}, f"a plan of {configuration}", operator.process, 120)
    return str(operator.get("fleet", FLEET)["status"]["candidatePlan"]["digest"])


def configurations(plan: dict[str, Any]) -> set[str]:
    """Those that a plan uses."""
    return {group["configuration"] for group in plan["spec"]["groups"] if group["replicas"]}


def check(history: PodHistory) -> None:
    """No node was ever over its GPUs, and the floor held; the history tells of both."""
    moments = list(history.moments())
    assert len(moments) > ALL_GPUS
    assert max(held for moment in moments for held in moment.held.values()) == GPUS_OF_A_NODE
    begun = next(n for n, moment in enumerate(moments) if moment.serving == ALL_GPUS)
    assert min(moment.serving for moment in moments[begun:]) * 1000 >= FLOOR_MILLI * ALL_GPUS


def test_there_and_back_no_gpu_is_held_twice_and_the_floor_holds(scene: Scene) -> None:
    before, history = scene.specs(), PodHistory(scene.operator.cluster, scene.operator.namespace)
    scene.accept(scene.twos)
    assert scene.specs().keys().isdisjoint(before)
    scene.accept(scene.fours)
    check(history)
    assert scene.specs() == before


@pytest.mark.slow
def test_killed_after_each_kind_of_write_it_goes_on_there_and_back(scene: Scene) -> None:
    before, history = scene.specs(), PodHistory(scene.operator.cluster, scene.operator.namespace)
    kills = {digest: kill_on_the_way(scene, digest) for digest in (scene.twos, scene.fours)}
    check(history)
    assert scene.specs() == before
    for kinds in kills.values():
        assert kinds >= {("patch", "pods"), ("patch", "deployments"), ("patch", "configmaps")}


def kill_on_the_way(scene: Scene, digest: str) -> set[tuple[str, str]]:
    """Accept a plan; kill the operator after the first write of each kind; the kinds."""
    operator, seen = scene.operator, set[tuple[str, str]]()
    position = operator.audit_position()
    operator.accept(digest)

    def arrived() -> bool:
        fresh = {(w.verb, w.resource) for w in operator.writes_since(position) if w.resource != "events"} - seen
        if fresh:
            operator.process.kill()
            seen.update(fresh)
            operator.process.start()
        return scene.in_force == digest and ready(operator)

    until(arrived, "the plan in force", operator.cluster.plane.api_server, 400)
    return seen


def ready(operator: Operator) -> bool:
    """Whether the fleet is as planned, by a status that is not older than the spec."""
    fleet = operator.get("fleet", FLEET)
    stated = {c["type"]: (c["status"], c["reason"]) for c in fleet["status"]["conditions"]}
    current = fleet["status"]["observedGeneration"] == fleet["metadata"]["generation"]
    return current and stated["Ready"] == ("True", "AsPlanned")
