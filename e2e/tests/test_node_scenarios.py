"""What goes wrong on simulated nodes goes wrong as it does on real ones, where and when a test asks for it."""

from collections.abc import Callable, Iterator
from datetime import datetime

import pytest

from e2e.harness.cluster import Cluster
from e2e.harness.errors import KubectlFailed
from e2e.harness.kubectl import Kubectl, Manifest
from e2e.harness.simulated_nodes import SimulatedNode
from e2e.nodes import scenario
from e2e.tests.pods import apply, container_status, gone, ready, status
from e2e.tests.support import eventually

pytestmark = pytest.mark.e2e

MIXED = "nvidia.com/mig-3g.71gb"
LEAVE_AT_ONCE = [
    {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}
    for why in ("not-ready", "unreachable")
]


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with a plain node, one on which all pods run out of memory, and special ones."""
    special = [scenario.load(name).on(SimulatedNode(name)) for name in ("mig-mixed", "mig-single", "dedicated")]
    stages = scenario.stage_files(tmp_path_factory.mktemp("stages"), on_nodes={"oom": ["small-memory"]})
    with Cluster([SimulatedNode("plain"), SimulatedNode("small-memory"), *special], stages) as bed:
        yield bed
        if request.session.testsfailed:
            bed.keep_logs()


def engine(name: str, node: str, annotations: dict[str, str] | None = None, **spec: object) -> Manifest:
    """A pod that the scheduler can put on this node alone."""
    resources = spec.pop("resources", {"limits": {"nvidia.com/gpu": "1"}})
    containers = [{"name": "vllm", "image": "vllm:1", "resources": resources}]
    content = {"nodeSelector": {"kubernetes.io/hostname": node}, "containers": containers, **spec}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": content,
    }


def condition(found: Manifest, kind: str) -> Manifest:
    held: list[Manifest] = [each for each in found.get("conditions", []) if each["type"] == kind]
    return held[0] if held else {"status": "False"}


def node_ready(cluster: Cluster, node: str, expected: str) -> None:
    def matches() -> bool:
        return bool(condition(cluster.kubectl.get("node", node)["status"], "Ready")["status"] == expected)

    eventually(matches, f"Ready of {node} is {expected}")


@pytest.mark.parametrize(
    ("name", "code", "reason"), [("crash-loop", 1, "Error"), ("oom", 137, "OOMKilled"), ("load-failure", 1, "Error")]
)
def test_a_container_ends_again_and_again_and_says_why(
    cluster: Cluster, namespace: str, name: str, code: int, reason: str
) -> None:
    annotations = scenario.load(name).annotations(crash_after="100ms", back_off="200ms")
    apply(cluster, namespace, engine(name, "plain", annotations))

    def restarted_twice() -> bool:
        return bool(container_status(cluster, namespace, name).get("restartCount", 0) >= 2)

    eventually(restarted_twice, "the container was started three times")
    found = status(cluster, namespace, name)
    last = found["containerStatuses"][0]["lastState"]["terminated"]
    assert (found["phase"], last["exitCode"], last["reason"]) == ("Running", code, reason)


def test_an_engine_that_fails_to_load_is_never_ready(cluster: Cluster, namespace: str) -> None:
    annotations = scenario.load("load-failure").annotations(crash_after="50ms", back_off="50ms")
    apply(cluster, namespace, engine("broken", "plain", annotations))
    eventually(lambda: container_status(cluster, namespace, "broken").get("restartCount", 0) >= 1, "it is restarted")
    waited = ("wait", "pod/broken", f"--namespace={namespace}", "--for=condition=Ready", "--timeout=1s")
    with pytest.raises(KubectlFailed, match="timed out waiting"):
        cluster.kubectl(*waited)


def test_a_scenario_of_a_node_happens_to_every_pod_on_it(cluster: Cluster, namespace: str) -> None:
    apply(cluster, namespace, engine("here", "small-memory"), engine("there", "plain"))

    def out_of_memory() -> bool:
        last = container_status(cluster, namespace, "here").get("lastState", {})
        return bool(last.get("terminated", {}).get("reason") == "OOMKilled")

    eventually(out_of_memory, "the pod on the node runs out of memory")
    ready(cluster, namespace, "there")
    assert container_status(cluster, namespace, "there")["restartCount"] == 0


def test_a_cold_engine_is_ready_only_after_pull_and_load(cluster: Cluster, namespace: str) -> None:
    apply(cluster, namespace, engine("cold", "plain", scenario.load("cold-start").annotations(pull="1s", load="3s")))
    ready(cluster, namespace, "cold")
    found = status(cluster, namespace, "cold")
    since = datetime.fromisoformat(condition(found, "Ready")["lastTransitionTime"])
    pulled = datetime.fromisoformat(found["startTime"])
    scheduled = datetime.fromisoformat(condition(found, "PodScheduled")["lastTransitionTime"])
    assert (since - pulled).total_seconds() >= 2, "three seconds of loading, timestamps in whole seconds"
    assert (since - scheduled).total_seconds() >= 3


def test_a_stuck_pod_holds_its_gpus_until_it_is_forced_away(cluster: Cluster, namespace: str) -> None:
    here = f"--namespace={namespace}"
    all_gpus = {"limits": {"nvidia.com/gpu": "8"}}
    stuck = scenario.load("stuck-terminating").annotations()
    apply(cluster, namespace, engine("stuck", "plain", stuck, resources=all_gpus))
    ready(cluster, namespace, "stuck")
    cluster.kubectl("delete", "pod", "stuck", here, "--wait=false")
    apply(cluster, namespace, engine("next", "plain", resources=all_gpus))
    eventually(lambda: "Insufficient nvidia.com/gpu" in unschedulable(cluster, namespace, "next"), "the next one waits")
    assert "deletionTimestamp" in cluster.kubectl.get("pod", "stuck", here)["metadata"]
    cluster.kubectl("delete", "pod", "stuck", here, "--force", "--grace-period=0")
    ready(cluster, namespace, "next")
    cluster.kubectl("delete", "pod", "next", here)


def unschedulable(cluster: Cluster, namespace: str, name: str) -> str:
    return str(condition(status(cluster, namespace, name), "PodScheduled").get("message", ""))


def test_pods_leave_a_node_that_is_not_ready_and_it_comes_back(cluster: Cluster, namespace: str) -> None:
    not_ready = scenario.load("not-ready")
    apply(cluster, namespace, engine("leaving", "plain", tolerations=LEAVE_AT_ONCE), engine("staying", "plain"))
    ready(cluster, namespace, "leaving", "staying")
    not_ready.begin(cluster.kubectl, "plain")
    try:
        node_ready(cluster, "plain", "False")
        gone(cluster, namespace, "leaving")
        tolerating = cluster.kubectl.get("pod", "staying", f"--namespace={namespace}")
        assert "deletionTimestamp" not in tolerating["metadata"], "others are given five minutes"
    finally:
        not_ready.end(cluster.kubectl, "plain")
    node_ready(cluster, "plain", "True")


def test_maintenance_drives_pods_away_and_a_cordon_keeps_new_ones_out(cluster: Cluster, namespace: str) -> None:
    maintenance, cordoned = scenario.load("maintenance"), scenario.load("cordoned")
    apply(cluster, namespace, engine("first", "plain"))
    ready(cluster, namespace, "first")
    maintenance.begin(cluster.kubectl, "plain")
    gone(cluster, namespace, "first")
    maintenance.end(cluster.kubectl, "plain")
    cordoned.begin(cluster.kubectl, "plain")
    apply(cluster, namespace, engine("second", "plain"))
    eventually(lambda: "unschedulable" in unschedulable(cluster, namespace, "second"), "the cordon holds")
    cordoned.end(cluster.kubectl, "plain")
    ready(cluster, namespace, "second")


def test_mig_devices_are_asked_for_by_their_own_name_or_as_gpus(cluster: Cluster, namespace: str) -> None:
    mixed = engine("mixed", "mig-mixed", resources={"limits": {MIXED: "2"}})
    whole = engine("whole", "mig-mixed")
    single = engine("single", "mig-single", resources={"limits": {"nvidia.com/gpu": "9"}})
    apply(cluster, namespace, mixed, whole, single)
    ready(cluster, namespace, "mixed", "single")
    eventually(
        lambda: "Insufficient nvidia.com/gpu" in unschedulable(cluster, namespace, "whole"), "no whole GPU there"
    )
    labels = cluster.kubectl.get("node", "mig-single")["metadata"]["labels"]
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-H200-MIG-1g.18gb"


def test_a_dedicated_node_takes_only_those_who_tolerate_it(cluster: Cluster, namespace: str) -> None:
    tolerating = [{"key": "dedicated", "value": "research", "effect": "NoSchedule"}]
    apply(cluster, namespace, engine("theirs", "dedicated", tolerations=tolerating), engine("ours", "dedicated"))
    ready(cluster, namespace, "theirs")
    eventually(lambda: "untolerated taint" in unschedulable(cluster, namespace, "ours"), "the others wait")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda _: scenario.load("earthquake"), "no scenario earthquake: choose from cold-start, cordoned, "),
        (lambda _: scenario.load("oom").annotations(size="9"), "no bed.kvplan.dev/size: its parameters are bed.kvplan"),
        (
            lambda kubectl: scenario.load("oom").begin(kubectl, "plain"),
            "oom does not begin or end on a node: An engine",
        ),
    ],
)
def test_a_wrong_use_of_a_scenario_is_told_with_the_right_ones(
    cluster: Cluster, wrong: Callable[[Kubectl], object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        wrong(cluster.kubectl)
