"""A cluster starts whole, stands beside others, and goes without a trace unless something failed."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e.harness.cluster import KUBECONFIG_VARIABLE, Cluster
from e2e.harness.errors import BedError, KubectlFailed, NotReady, ProcessDied
from e2e.harness.process import Command
from e2e.harness.simulated_nodes import KWOK_RBAC, SimulatedNode
from e2e.tests.support import ended, eventually, processes_that_mention

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_control_plane")]

# A harness of its own: starts a cluster, says where it is, and waits to be killed.
HARNESS = """
import json, signal
from e2e.harness.cluster import Cluster
with Cluster() as cluster:
    data = cluster.plane.etcd.command.remove[0]
    print(json.dumps([str(cluster.directory), str(data)]), flush=True)
    signal.pause()
"""


@contextmanager
def other_harness() -> Iterator[tuple[subprocess.Popen[str], Path, Path]]:
    with subprocess.Popen([sys.executable, "-c", HARNESS], stdout=subprocess.PIPE, text=True) as harness:
        assert harness.stdout is not None
        directory, data = json.loads(harness.stdout.readline())
        yield harness, Path(directory), Path(data)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_and_no_data_survive_a_killed_harness(how: signal.Signals) -> None:
    with other_harness() as (harness, directory, data):
        pids = processes_that_mention(str(directory)) + processes_that_mention(str(data))
        assert len(pids) >= 5, "etcd, API server, controller-manager, scheduler and kwok run"
        os.kill(harness.pid, how)
        harness.wait()
    assert all(ended(pid) for pid in pids)
    assert processes_that_mention(str(directory)) == []
    eventually(lambda: not data.exists(), "etcd's data is removed")
    assert (directory / "logs" / "kube-apiserver.log").exists()
    shutil.rmtree(directory)


@pytest.mark.smoke
def test_ctrl_c_ends_the_bed_of_make_cluster_without_a_trace() -> None:
    argv = [sys.executable, "-m", "e2e.harness.bed", "--nodes", "1"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as bed:
        assert bed.stdout is not None
        said: list[str] = []
        while not said or not said[-1].startswith("Ctrl-C"):
            said.append(bed.stdout.readline())
            assert said[-1], f"it ended early: {said}"
        bed.send_signal(signal.SIGINT)
        assert bed.wait(60) == 0
    kubeconfig = next(line.strip().removeprefix("export KUBECONFIG=") for line in said if line.startswith("export"))
    assert not Path(kubeconfig).parent.exists()
    assert processes_that_mention(str(Path(kubeconfig).parent)) == []


def test_two_clusters_side_by_side_do_not_know_each_other() -> None:
    def started(name: str) -> tuple[Cluster, str]:
        cluster = Cluster([SimulatedNode(name)]).__enter__()
        return cluster, cluster.kubectl("get", "nodes", "--output=name").strip()

    with ThreadPoolExecutor(2) as pool:
        clusters = list(pool.map(started, ["left", "right"]))
    try:
        assert [names for _, names in clusters] == ["node/left", "node/right"]
        (left, _), (right, _) = clusters
        assert left.plane.server != right.plane.server
        left.kubectl("create", "namespace", "only-left")
        with pytest.raises(KubectlFailed, match="not found"):
            right.kubectl("get", "namespace", "only-left")
    finally:
        for cluster, _ in clusters:
            cluster.__exit__(None, None, None)
    for cluster, _ in clusters:
        assert not cluster.directory.exists()
        assert processes_that_mention(str(cluster.directory)) == []


def test_a_cluster_that_the_caller_brings_is_used_and_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    with Cluster() as host:
        before = host.kubectl("get", "nodes,clusterroles", "--output=name")
        host.kubectl("delete", "-f", str(KWOK_RBAC))
        monkeypatch.setenv(KUBECONFIG_VARIABLE, str(host.kubeconfig))
        with Cluster([SimulatedNode("guest")]) as cluster:
            assert host.kubectl("get", "nodes", "--output=name") == "node/guest\n"
            with pytest.raises(BedError, match="not ours to touch"):
                _ = cluster.plane
        host.kubectl("apply", "-f", str(KWOK_RBAC))
        assert host.kubectl("get", "nodes,clusterroles", "--output=name") == before


def test_logs_stay_after_a_failure_and_keys_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), Cluster() as cluster:
        raise ZeroDivisionError
    assert capsys.readouterr().err == f"logs of the cluster: {cluster.logs}\n"
    assert (cluster.logs / "audit.jsonl").stat().st_size > 0
    assert not (cluster.directory / "pki").exists()
    shutil.rmtree(cluster.directory)


def test_a_component_that_dies_is_named_with_its_log(cluster: Cluster) -> None:
    broken = Command("broken", ["sh", "-c", "echo no such flag; exit 2"])
    with pytest.raises(ProcessDied, match="no such flag"):
        cluster.run(broken, ready=lambda: False)


def test_a_component_that_never_gets_ready_is_named_with_its_deadline(cluster: Cluster) -> None:
    silent = Command("silent", ["sleep", "600"])
    with pytest.raises(NotReady, match=r"silent ready did not happen within 0\.3 s"):
        cluster.run(silent, ready=lambda: False, seconds=0.3)


def test_objects_outlive_a_crash_of_the_api_server() -> None:
    with Cluster() as cluster:
        cluster.kubectl("create", "configmap", "kept", "--from-literal=answer=42")
        cluster.plane.api_server.kill()
        with pytest.raises(KubectlFailed, match="refused"):
            cluster.kubectl("get", "configmap", "kept")
        cluster.plane.api_server.start()
        cluster.plane.wait_for_api_server()
        assert cluster.kubectl.get("configmap", "kept")["data"] == {"answer": "42"}
