"""A pod on a process node runs for real: its words, files, variables, identity and address are its own."""

import json
from collections.abc import Iterator

import pytest

from e2e.agent import process_nodes
from e2e.agent.process_nodes import ProcessNode
from e2e.harness.cluster import Cluster
from e2e.harness.simulated_nodes import SimulatedNode
from e2e.tests.pods import PROGRAM, apply, ask, ended, log, pod, ready, server, shell, status, with_program
from e2e.tests.support import eventually

pytestmark = pytest.mark.e2e

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster with one process node."""
    with Cluster() as bed:
        process_nodes.start(bed, ProcessNode(SimulatedNode("worker-1", gpus=8), back_off_scale=0.02))
        yield bed
        if request.session.testsfailed:
            bed.keep_logs()


def variable(name: str, **source: object) -> dict[str, object]:
    return {"name": name, "valueFrom": source}


def test_two_pods_listen_on_the_same_port_of_their_own_addresses(cluster: Cluster, namespace: str) -> None:
    with_program(cluster, namespace)
    probe = {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 1}
    for name in ("left", "right"):
        apply(cluster, namespace, pod(name, server(readinessProbe=probe), volumes=[PROGRAM]))
    ready(cluster, namespace, "left", "right")
    addresses = {name: status(cluster, namespace, name)["podIP"] for name in ("left", "right")}
    assert all(address.startswith("127.") for address in addresses.values())
    assert addresses["left"] != addresses["right"]
    for name, address in addresses.items():
        told = json.loads(ask(cluster, namespace, name, "/environment")[1])
        assert (told["POD_IP"], told["HOSTNAME"]) == (address, name)


def test_variables_come_from_where_the_spec_says_and_from_nowhere_else(cluster: Cluster, namespace: str) -> None:
    here = f"--namespace={namespace}"
    cluster.kubectl("create", "configmap", "settings", "--from-literal=mode=fast", "--from-literal=size=3", here)
    cluster.kubectl("create", "secret", "generic", "key", "--from-literal=password=s3cret", here)
    variables = [
        {"name": "PLAIN", "value": "a"},
        {"name": "COMPOSED", "value": "$(PLAIN)-$(MODE)-$(UNKNOWN)-$$(PLAIN)"},
        variable("NODE", fieldRef={"fieldPath": "spec.nodeName"}),
        variable("LABEL", fieldRef={"fieldPath": "metadata.labels['app']"}),
        variable("PASSWORD", secretKeyRef={"name": "key", "key": "password"}),
        variable("ABSENT", configMapKeyRef={"name": "nowhere", "key": "x", "optional": True}),
        variable("CPUS", resourceFieldRef={"resource": "requests.cpu", "divisor": "1m"}),
        variable("MEMORY", resourceFieldRef={"resource": "limits.memory", "divisor": "1Mi"}),
    ]
    limits = {"limits": {"memory": "1Gi"}, "requests": {"cpu": "0.25"}}
    prefixed = [{"configMapRef": {"name": "settings"}, "prefix": "S_"}]
    variables.insert(1, variable("MODE", configMapKeyRef={"name": "settings", "key": "mode"}))
    container = shell("env", env=variables, envFrom=prefixed, resources=limits)
    apply(cluster, namespace, pod("teller", container, restartPolicy="Never"))
    ended(cluster, namespace, "teller", "Succeeded")
    told = dict(line.split("=", 1) for line in log(cluster, namespace, "teller").splitlines())
    for usual in ("PATH", "HOME", "HOSTNAME", "TMPDIR", "LANG", "PWD", "KUBECONFIG", "KVPLAN_BED_POD_IP"):
        told.pop(usual)
    assert told == {
        "S_mode": "fast",
        "S_size": "3",
        "PLAIN": "a",
        "MODE": "fast",
        "COMPOSED": "a-fast-$(UNKNOWN)-$(PLAIN)",
        "NODE": "worker-1",
        "LABEL": "teller",
        "PASSWORD": "s3cret",
        "CPUS": "250",
        "MEMORY": "1024",
    }


def test_every_kind_of_volume_is_there_under_its_mount_path(cluster: Cluster, namespace: str) -> None:
    here = f"--namespace={namespace}"
    cluster.kubectl("create", "configmap", "settings", "--from-literal=a=1", "--from-literal=b=2", here)
    cluster.kubectl("create", "secret", "generic", "key", "--from-literal=password=s3cret", here)
    label = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
    volumes = [
        {"name": "settings", "configMap": {"name": "settings", "items": [{"key": "b", "path": "sub/second"}]}},
        {"name": "key", "secret": {"secretName": "key", "defaultMode": 0o400}},
        {"name": "self", "downwardAPI": {"items": [label]}},
        {"name": "all", "projected": {"sources": [{"configMap": {"name": "settings"}}, {"secret": {"name": "key"}}]}},
        {"name": "scratch", "emptyDir": {}},
    ]
    mounts = [{"name": volume["name"], "mountPath": f"/data/{volume['name']}"} for volume in volumes]
    mounts.append({"name": "settings", "mountPath": "/one-file", "subPath": "sub/second"})
    script = """
        echo scratch > /data/scratch/file && cat /data/scratch/file
        cat /data/settings/sub/second /one-file $KEY /data/self/labels && echo
        stat --dereference --format=%a $KEY
        ls /data/all
    """
    container = shell(script, volumeMounts=mounts, env=[{"name": "KEY", "value": "/data/key/password"}])
    apply(cluster, namespace, pod("reader", container, volumes=volumes, restartPolicy="Never"))
    ended(cluster, namespace, "reader", "Succeeded")
    assert log(cluster, namespace, "reader").split() == [
        *("scratch", '22s3cretapp="reader"', "400"),
        *("a", "b", "password"),
    ]


def test_a_changed_configmap_reaches_the_running_pod_whole(cluster: Cluster, namespace: str) -> None:
    with_program(cluster, namespace)
    table = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "table"},
        "data": {"one": "old", "two": "old"},
    }
    apply(cluster, namespace, table)
    mount = {"name": "table", "mountPath": "/app-data"}
    reader = server(volumeMounts=[mount])
    reader["command"][-1] = "/app-data"
    probe = {"tcpSocket": {"port": "http"}, "periodSeconds": 1}
    volumes = [PROGRAM, {"name": "table", "configMap": {"name": "table"}}]
    apply(cluster, namespace, pod("reader", reader | {"readinessProbe": probe}, volumes=volumes))
    ready(cluster, namespace, "reader")
    assert ask(cluster, namespace, "reader", "/file/one") == (200, "old")
    apply(cluster, namespace, table | {"data": {"two": "new"}})
    eventually(lambda: ask(cluster, namespace, "reader", "/file/two") == (200, "new"), "the new table is there")
    assert ask(cluster, namespace, "reader", "/file/one") == (404, ""), "the key that went is gone at once"


def test_a_pod_waits_for_a_configmap_that_is_missing(cluster: Cluster, namespace: str) -> None:
    volume = {"name": "late", "configMap": {"name": "late"}}
    container = shell("cat /late/word", volumeMounts=[{"name": "late", "mountPath": "/late"}])
    apply(cluster, namespace, pod("patient", container, volumes=[volume], restartPolicy="Never"))

    def explained() -> bool:
        return "configmaps 'late' not found" in status(cluster, namespace, "patient").get("message", "")

    eventually(explained, "the status says what is missing")
    assert status(cluster, namespace, "patient")["phase"] == "Pending"
    cluster.kubectl("create", "configmap", "late", "--from-literal=word=here", f"--namespace={namespace}")
    ended(cluster, namespace, "patient", "Succeeded")
    assert log(cluster, namespace, "patient") == "here"
    assert "message" not in status(cluster, namespace, "patient")


def test_the_service_account_may_do_what_rbac_says_and_no_more(cluster: Cluster, namespace: str) -> None:
    here = f"--namespace={namespace}"
    with_program(cluster, namespace)
    account = [{"name": "ACCOUNT", "value": ACCOUNT}, {"name": "API_SERVER", "value": cluster.plane.server}]
    probe = {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 1}
    apply(cluster, namespace, pod("reader", server(env=account, readinessProbe=probe), volumes=[PROGRAM]))
    ready(cluster, namespace, "reader")
    assert ask(cluster, namespace, "reader", "/configmaps")[0] == 403
    cluster.kubectl("create", "rolebinding", "see", "--clusterrole=view", f"--serviceaccount={namespace}:default", here)
    eventually(lambda: ask(cluster, namespace, "reader", "/configmaps")[0] == 200, "RBAC lets it read its namespace")
    listed = json.loads(ask(cluster, namespace, "reader", "/configmaps")[1])["items"]
    assert {each["metadata"]["name"] for each in listed} == {"kube-root-ca.crt", "program"}
    kubeconfig = json.loads(ask(cluster, namespace, "reader", "/environment")[1])["KUBECONFIG"]
    user = cluster.kubectl(
        "--kubeconfig", kubeconfig, "auth", "whoami", "--output=jsonpath={.status.userInfo.username}"
    )
    assert user == f"system:serviceaccount:{namespace}:default"


def test_a_pod_without_a_service_account_token_has_no_kubeconfig(cluster: Cluster, namespace: str) -> None:
    container = shell('echo "${KUBECONFIG-none}"')
    apply(cluster, namespace, pod("anon", container, automountServiceAccountToken=False, restartPolicy="Never"))
    ended(cluster, namespace, "anon", "Succeeded")
    assert log(cluster, namespace, "anon") == "none\n"


def test_an_image_that_nobody_knows_is_told(cluster: Cluster, namespace: str) -> None:
    apply(cluster, namespace, pod("stranger", {"name": "main", "image": "example.org/stranger:1"}))

    def reason() -> str:
        state = status(cluster, namespace, "stranger").get("containerStatuses", [{}])[0].get("state", {})
        return str(state.get("waiting", {}).get("reason"))

    eventually(lambda: reason() == "ErrImagePull", "the status says that the image is unknown")
