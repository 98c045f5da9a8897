"""The Helm chart: what it renders is what the kustomize bases have, and values that cannot work are refused."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.harness.assets import binary
from e2e.install.comparing import comparable
from e2e.install.rendering import CHART, NAMESPACE, Object, Objects, by_name, helm_template, kustomize, manifests

pytestmark = pytest.mark.slow  # helm is built for it

ROUTER = {"fleet": "assistants", "namespace": "default", "replicas": 2}
EVERYTHING = {"routers": [ROUTER], "monitoring": {"enabled": True}}


def by_kustomize(directory: Path, overlay: str, *, monitoring: bool = False) -> list[Object]:
    """The operator by an overlay, and the sample fleet's routers in `default`."""
    manifests(directory)
    asked: dict[str, Any] = {"namespace": "default", "resources": ["../manifests/router"]}
    (directory / "routers").mkdir()
    (directory / "routers" / "kustomization.yaml").write_text(yaml.safe_dump(asked))
    operator: dict[str, Any] = {"namespace": NAMESPACE, "resources": [f"../manifests/overlays/{overlay}"]}
    if monitoring:
        operator["components"] = ["../manifests/components/monitoring"]
        operator["labels"] = [{"pairs": {"app.kubernetes.io/part-of": "kvplan"}}]
    (directory / "operator").mkdir()
    (directory / "operator" / "kustomization.yaml").write_text(yaml.safe_dump(operator))
    return kustomize(directory / "operator") + kustomize(directory / "routers")


def test_chart_and_kustomize_bases_are_the_same_objects(tmp_path: Path) -> None:
    of_helm = comparable(helm_template(EVERYTHING))
    of_kustomize = comparable(by_kustomize(tmp_path, "cluster-wide", monitoring=True))
    assert sorted(of_helm) == sorted(of_kustomize)
    for key, item in of_helm.items():
        assert item == of_kustomize[key], key


def bindings(objects: Objects) -> Objects:
    return {key: item for key, item in objects.items() if key[0].endswith("Binding")}


def test_namespaces_bind_the_fleets_role_in_each_of_them_and_nowhere_else(tmp_path: Path) -> None:
    folder = manifests(tmp_path) / "overlays" / "namespaced"
    of_helm = comparable(helm_template({"operator": {"namespaces": ["serving"]}}))
    of_kustomize = comparable(kustomize(folder))
    assert bindings(of_helm) == bindings(of_kustomize)
    settings = ("ConfigMap", NAMESPACE, "kvplan-settings")
    assert of_helm[settings] == of_kustomize[settings]


def test_the_overlay_of_another_fleet_names_it_everywhere(tmp_path: Path) -> None:
    objects = by_name(kustomize(manifests(tmp_path) / "overlays" / "another-fleet"))
    assert "assistants" not in yaml.safe_dump(list(objects.values()))
    role = objects["Role", "serving", "kvplan-router-chat"]
    assert role["rules"][0]["resourceNames"] == ["chat-table"]
    selector = objects["Service", "serving", "kvplan-router-chat"]["spec"]["selector"]
    pod = objects["Deployment", "serving", "kvplan-router-chat"]["spec"]["template"]["metadata"]["labels"]
    assert selector.items() <= pod.items()


def router_pods(objects: list[Object]) -> list[Any]:
    """What the pods of each router Deployment are made of."""
    routers = [item for item in objects if item["kind"] == "Deployment" and "router" in item["metadata"]["name"]]
    return [router["spec"]["template"]["spec"] for router in routers]


def test_two_fleets_of_one_namespace_share_one_hash_secret() -> None:
    objects = helm_template({"routers": [ROUTER, {**ROUTER, "fleet": "chat"}]})
    secrets = [item for item in objects if item["kind"] == "Secret"]
    pods = router_pods(objects)
    assert [secret["metadata"]["namespace"] for secret in secrets] == ["default"]
    used = {v["secret"]["secretName"] for pod in pods for v in pod["volumes"] if "secret" in v}
    assert used == {secrets[0]["metadata"]["name"]}
    assert len(pods) == 2


def test_a_router_takes_further_settings_as_variables() -> None:
    variable = {"name": "KVPLAN_ROUTER_SAMPLE_MILLI", "value": "200"}
    objects = helm_template({"routers": [{**ROUTER, "extraEnv": [variable]}]})
    (pod,) = router_pods(objects)
    (router,) = [container for container in pod["containers"] if container["name"] == "router"]
    assert router["env"][-1] == variable
    assert len({each["name"] for each in router["env"]}) == len(router["env"])


def test_a_hash_secret_of_ones_own_is_used_and_none_is_made() -> None:
    objects = helm_template({"routers": [ROUTER], "hashSecret": {"existing": "ours"}})
    assert not [item for item in objects if item["kind"] == "Secret"]
    assert "secretName: ours" in yaml.safe_dump(objects)


def test_an_entry_of_routers_wins_over_what_all_routers_have() -> None:
    objects = by_name(helm_template({"routers": [{**ROUTER, "drainSeconds": 60}], "router": {"envoyConcurrency": 7}}))
    pod = objects["Deployment", "default", "kvplan-router-assistants"]["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == 90
    assert "--concurrency 7" in pod["containers"][1]["args"][0]


GOOD: dict[str, Object] = {
    "nothing": {},
    "a fleet's routers behind a load balancer": {
        "routers": [{**ROUTER, "service": {"type": "LoadBalancer", "port": 80}}]
    },
    "a Prometheus with a token": {
        "operator": {"prometheus": {"profiles": {"default": {"url": "https://p:9090", "token_file": "/t/token"}}}}
    },
    "a private registry": {
        "imagePullSecrets": [{"name": "registry"}],
        "operator": {"image": {"repository": "registry.example:5000/kvplan/operator", "tag": "1.2.3"}},
    },
    "other leases": {"operator": {"settings": {"lease": {"duration_seconds": 30, "renew_seconds": 20}}}},
    "no network policies": {"networkPolicy": {"enabled": False}},
}


@pytest.mark.parametrize("values", GOOD.values(), ids=GOOD)
def test_values_that_work_are_rendered_and_pass_lint(values: Object, tmp_path: Path) -> None:
    assert helm_template(values)
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    command = [str(binary("helm")), "lint", "--strict", str(CHART), f"--values={file}"]
    assert "0 chart(s) failed" in subprocess.run(command, check=True, capture_output=True, text=True).stdout


BAD: dict[str, tuple[Object, str]] = {
    "a value nobody knows": ({"operator": {"replica": 2}}, "replica"),
    "no operator at all": ({"operator": {"replicas": 0}}, "minimum"),
    "a router of no fleet": ({"routers": [{"namespace": "default", "replicas": 2}]}, "fleet"),
    "a fleet's name with a namespace in it": ({"routers": [{**ROUTER, "fleet": "default/assistants"}]}, "fleet"),
    "a namespace that is none": ({"operator": {"namespaces": ["Serving"]}}, "pattern"),
    "the same namespace twice": ({"operator": {"namespaces": ["a", "a"]}}, "unique|equal"),
    "a Prometheus with a password in its address": (
        {"operator": {"prometheus": {"profiles": {"default": {"url": "http://user:pass@p"}}}}},
        "pattern",
    ),
    "a token where its file belongs": (
        {"operator": {"prometheus": {"profiles": {"default": {"url": "http://p", "token": "abc"}}}}},
        "token",
    ),
    "a drain of days": ({"router": {"drainSeconds": 100_000}}, "maximum"),
    "an image tag with a space": ({"operator": {"image": {"repository": "kvplan/operator", "tag": "a b"}}}, "pattern"),
    "a log level that is none": ({"operator": {"settings": {"log_level": "LOUD"}}}, "one of"),
    "a setting of a section nobody knows": ({"operator": {"settings": {"lease": {"duration": 3}}}}, "duration"),
    "a setting nobody knows": ({"operator": {"settings": {"kubeconfig": "/root/.kube/config"}}}, "kubeconfig"),
}


@pytest.mark.parametrize(("values", "words"), BAD.values(), ids=BAD)
def test_values_that_cannot_work_are_refused_by_the_schema(values: Object, words: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        helm_template(values)
    assert "values don't meet the specifications of the schema" in refused.value.stderr
    assert any(word in refused.value.stderr for word in words.split("|"))
