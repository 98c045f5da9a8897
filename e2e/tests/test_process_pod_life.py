"""The life of a pod on a process node: init, probes, restarts, hooks, and the end, each as a kubelet does it."""

import signal
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from e2e.agent import process_nodes
from e2e.agent.process_nodes import ProcessNode
from e2e.harness.cluster import Cluster
from e2e.harness.kubectl import Manifest
from e2e.harness.simulated_nodes import SimulatedNode
from e2e.tests.pods import (
    PROGRAM,
    apply,
    ask,
    container_status,
    ended,
    gone,
    log,
    pod,
    ready,
    says,
    server,
    shell,
    status,
    with_program,
)
from e2e.tests.support import ended as process_ended
from e2e.tests.support import eventually

pytestmark = pytest.mark.e2e

EVERY_SECOND = {"periodSeconds": 1, "failureThreshold": 1}
FOR_EVER = "while :; do sleep 0.05; done"


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster with one process node whose restarts come fifty times sooner than a kubelet's."""
    with Cluster() as bed:
        process_nodes.start(bed, ProcessNode(SimulatedNode("worker-1", gpus=8), back_off_scale=0.02))
        yield bed
        if request.session.testsfailed:
            bed.keep_logs()


def get(path: str) -> Manifest:
    return {"httpGet": {"path": path, "port": "http"}, **EVERY_SECOND}


def is_ready(cluster: Cluster, namespace: str, name: str) -> bool:
    conditions = {each["type"]: each["status"] for each in status(cluster, namespace, name)["conditions"]}
    return bool(conditions["Ready"] == "True")


def delete(cluster: Cluster, namespace: str, name: str, *options: str) -> None:
    cluster.kubectl("delete", "pod", name, f"--namespace={namespace}", "--wait=false", *options)


def test_readiness_follows_its_probe_both_ways(cluster: Cluster, namespace: str) -> None:
    script = f"rm -f open; {FOR_EVER}"
    probe = {"exec": {"command": ["test", "-e", "/signs/open"]}, **EVERY_SECOND}
    signs = {"name": "signs", "mountPath": "/signs"}
    other = shell("touch /signs/open; while [ -e /signs/open ]; do sleep 0.05; done; sleep 600", "other")
    manifest = pod(
        "swinging",
        shell(script, readinessProbe=probe, volumeMounts=[signs]),
        other | {"volumeMounts": [signs]},
        volumes=[{"name": "signs", "emptyDir": {}}],
    )
    apply(cluster, namespace, manifest)
    ready(cluster, namespace, "swinging")
    uid = cluster.kubectl.get("pod", "swinging", f"--namespace={namespace}")["metadata"]["uid"]
    (cluster.directory / "agent-worker-1" / "pods" / uid / "volumes" / "signs" / "open").unlink()
    eventually(lambda: not is_ready(cluster, namespace, "swinging"), "the pod is not Ready")
    assert container_status(cluster, namespace, "swinging")["restartCount"] == 0


def test_the_agent_corrects_a_status_that_another_has_written(cluster: Cluster, namespace: str) -> None:
    apply(cluster, namespace, pod("steady", shell(FOR_EVER)))
    ready(cluster, namespace, "steady")
    wrong = '{"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "NodeLost"}]}}'
    cluster.kubectl("patch", "pod", "steady", f"--namespace={namespace}", "--subresource=status", "-p", wrong)
    ready(cluster, namespace, "steady")


def test_a_failed_liveness_probe_restarts_the_container_at_its_address(cluster: Cluster, namespace: str) -> None:
    with_program(cluster, namespace)
    container = server(readinessProbe=get("/ready"), livenessProbe={**get("/alive"), "failureThreshold": 3})
    apply(cluster, namespace, pod("mortal", container, volumes=[PROGRAM]))
    ready(cluster, namespace, "mortal")
    address = status(cluster, namespace, "mortal")["podIP"]
    ask(cluster, namespace, "mortal", "/die")
    eventually(lambda: container_status(cluster, namespace, "mortal")["restartCount"] == 1, "the container restarts")
    ready(cluster, namespace, "mortal")
    assert status(cluster, namespace, "mortal")["podIP"] == address
    last = container_status(cluster, namespace, "mortal")["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (0, "Completed"), "it was asked to stop before it was killed"
    assert log(cluster, namespace, "mortal", "server").count("started") == 2


def test_nothing_is_probed_before_the_startup_probe_has_succeeded(cluster: Cluster, namespace: str) -> None:
    with_program(cluster, namespace)
    cold = {**get("/file/warm"), "failureThreshold": 60}
    container = server(startupProbe=cold, livenessProbe=get("/file/warm"))
    container["command"][-1] = "/state"
    container["volumeMounts"].append({"name": "state", "mountPath": "/state"})
    apply(cluster, namespace, pod("slow", container, volumes=[PROGRAM, {"name": "state", "emptyDir": {}}]))
    eventually(lambda: log(cluster, namespace, "slow", "server").count("/file/warm") >= 3, "it was probed three times")
    cold_status = container_status(cluster, namespace, "slow")
    assert (cold_status["started"], cold_status["ready"], cold_status["restartCount"]) == (False, False, 0)
    uid = cluster.kubectl.get("pod", "slow", f"--namespace={namespace}")["metadata"]["uid"]
    (cluster.directory / "agent-worker-1" / "pods" / uid / "volumes" / "state" / "warm").touch()
    ready(cluster, namespace, "slow")
    assert container_status(cluster, namespace, "slow")["started"] is True


def test_a_crashing_container_backs_off_and_tells_how_it_ended(cluster: Cluster, namespace: str) -> None:
    apply(cluster, namespace, pod("crashing", shell("echo trying; exit 3")))

    def backing_off() -> bool:
        state = container_status(cluster, namespace, "crashing").get("state", {})
        return bool(state.get("waiting", {}).get("reason") == "CrashLoopBackOff")

    eventually(backing_off, "the container waits before its next start")
    eventually(lambda: log(cluster, namespace, "crashing").count("trying") >= 4, "it is tried again and again")
    found = status(cluster, namespace, "crashing")
    assert found["phase"] == "Running"
    assert found["containerStatuses"][0]["restartCount"] >= 3
    assert found["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 3
    assert not is_ready(cluster, namespace, "crashing")


@pytest.mark.parametrize(
    ("policy", "script", "phase", "code", "reason"),
    [
        ("Never", "exit 0", "Succeeded", 0, "Completed"),
        ("Never", "exit 7", "Failed", 7, "Error"),
        ("Never", "kill -KILL $$$$", "Failed", 137, "Error"),
        ("OnFailure", "[ -e again ] || { touch again; exit 1; }", "Succeeded", 0, "Completed"),
    ],
)
def test_a_pod_that_ends_says_how(
    cluster: Cluster, namespace: str, policy: str, script: str, phase: str, code: int, reason: str
) -> None:
    name = f"{policy.lower()}-{code}"
    apply(cluster, namespace, pod(name, shell(script), restartPolicy=policy))
    ended(cluster, namespace, name, phase)
    terminated = container_status(cluster, namespace, name)["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (code, reason)


def test_a_program_that_is_not_there_is_a_start_error(cluster: Cluster, namespace: str) -> None:
    container = {"name": "main", "image": "any", "command": ["no-such-program"]}
    apply(cluster, namespace, pod("missing", container, restartPolicy="Never"))
    ended(cluster, namespace, "missing", "Failed")
    terminated = container_status(cluster, namespace, "missing")["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (128, "StartError")
    assert terminated["message"] == 'exec: "no-such-program": executable file not found in $PATH'


def test_init_containers_run_one_after_the_other_before_the_others(cluster: Cluster, namespace: str) -> None:
    shared = [{"name": "shared", "mountPath": "/shared"}]
    init = [
        shell(f"[ ! -e /shared/order ] || exit 1; echo {name} >> /shared/{name}", name, volumeMounts=shared)
        for name in ("first", "second")
    ]
    init[1]["command"][-1] = "test -e /shared/first && touch /shared/order"
    main = shell("ls /shared", volumeMounts=shared)
    volumes = [{"name": "shared", "emptyDir": {}}]
    apply(cluster, namespace, pod("built", main, initContainers=init, volumes=volumes, restartPolicy="Never"))
    ended(cluster, namespace, "built", "Succeeded")
    assert log(cluster, namespace, "built").split() == ["first", "order"]
    found = status(cluster, namespace, "built")["initContainerStatuses"]
    assert [each["state"]["terminated"]["exitCode"] for each in found] == [0, 0]


def test_a_failed_init_container_fails_the_pod(cluster: Cluster, namespace: str) -> None:
    manifest = pod("unbuilt", shell("echo never"), initContainers=[shell("exit 4", "init")], restartPolicy="Never")
    apply(cluster, namespace, manifest)
    ended(cluster, namespace, "unbuilt", "Failed")
    assert log(cluster, namespace, "unbuilt") == ""


@pytest.mark.parametrize(
    ("name", "hook"),
    [
        ("runs", {"exec": {"command": ["sh", "-c", "echo preStop"]}}),
        ("asks", {"httpGet": {"path": "/preStop", "port": "http"}}),
    ],
)
def test_prestop_comes_before_sigterm_and_the_pod_goes(
    cluster: Cluster, namespace: str, name: str, hook: Manifest
) -> None:
    with_program(cluster, namespace)
    container = server(readinessProbe=get("/ready"), lifecycle={"preStop": hook})
    apply(cluster, namespace, pod(name, container, volumes=[PROGRAM]))
    ready(cluster, namespace, name)
    delete(cluster, namespace, name)
    gone(cluster, namespace, name)
    before, _, after = log(cluster, namespace, name, "server").partition("SIGTERM")
    assert "preStop" in before
    assert after == "\n"


def test_a_sleeping_prestop_keeps_the_pod_serving_and_not_longer_than_its_grace(
    cluster: Cluster, namespace: str
) -> None:
    with_program(cluster, namespace)
    container = server(readinessProbe=get("/ready"), lifecycle={"preStop": {"sleep": {"seconds": 2}}})
    apply(cluster, namespace, pod("sleepy", container, volumes=[PROGRAM]))
    ready(cluster, namespace, "sleepy")
    delete(cluster, namespace, "sleepy")
    assert ask(cluster, namespace, "sleepy", "/alive") == (200, "ok")
    assert is_ready(cluster, namespace, "sleepy")
    gone(cluster, namespace, "sleepy")
    assert log(cluster, namespace, "sleepy", "server").endswith("SIGTERM\n")


def test_a_pod_that_ignores_sigterm_is_killed_after_its_grace(cluster: Cluster, namespace: str) -> None:
    manifest = pod("deaf", shell(f"trap 'echo deaf' TERM; echo up; {FOR_EVER}"))
    manifest["metadata"]["finalizers"] = ["bed.kvplan.dev/seen"]  # so that its last status can be read
    apply(cluster, namespace, manifest)
    says(cluster, namespace, "deaf", "up")
    delete(cluster, namespace, "deaf", "--grace-period=2")
    asked = cluster.kubectl.get("pod", "deaf", f"--namespace={namespace}")["metadata"]
    assert asked["deletionGracePeriodSeconds"] == 2
    ended(cluster, namespace, "deaf", "Failed")
    assert "deaf" in log(cluster, namespace, "deaf")
    terminated = container_status(cluster, namespace, "deaf")["state"]["terminated"]
    assert terminated["exitCode"] == 137
    due = datetime.fromisoformat(asked["deletionTimestamp"])  # when the grace is over
    assert datetime.fromisoformat(terminated["finishedAt"]) >= due - timedelta(seconds=1), "it had its whole grace"
    patch = '{"metadata": {"finalizers": null}}'
    cluster.kubectl("patch", "pod", "deaf", f"--namespace={namespace}", "--type=merge", "-p", patch)
    gone(cluster, namespace, "deaf")


def test_a_forced_deletion_ends_the_processes_too(cluster: Cluster, namespace: str) -> None:
    apply(cluster, namespace, pod("deaf", shell(f"trap '' TERM; echo $$$$; {FOR_EVER}")))
    says(cluster, namespace, "deaf", "\n")
    pid = int(log(cluster, namespace, "deaf"))
    assert Path(f"/proc/{pid}").exists()
    delete(cluster, namespace, "deaf", "--force", "--grace-period=0")
    assert process_ended(pid)


def test_nothing_of_a_pod_survives_a_killed_agent() -> None:
    with Cluster() as bed:
        agent = process_nodes.start(bed, ProcessNode(SimulatedNode("worker-1")))
        apply(
            bed, "default", pod("orphan", shell(f"trap '' TERM; (trap '' TERM; {FOR_EVER}) & echo $$$$ $!; {FOR_EVER}"))
        )
        says(bed, "default", "orphan", "\n")
        pids = [int(pid) for pid in log(bed, "default", "orphan").split()]
        agent.send(signal.SIGKILL)
        assert all(process_ended(pid) for pid in pids)
        agent.stop()
        agent.start()
        eventually(lambda: container_status(bed, "default", "orphan")["restartCount"] == 1, "a new agent runs it again")
        ready(bed, "default", "orphan")
        agent.stop()
        assert list(bed.directory.glob("agent-worker-1/pods/*")) == []
