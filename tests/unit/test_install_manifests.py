"""Manifests and chart agree with the programs that they start: settings, rights, versions, copies."""

import json
import re
import runpy
import tomllib
from pathlib import Path
from typing import Any, TypeGuard

import pytest
import yaml
from pydantic import BaseModel

from kvplan_operator.observe.profile import PrometheusConnection
from kvplan_operator.reconcile.startup import LEASE_NEED, NEEDS, WORKER_SET_NEED, Need
from kvplan_operator.settings import Settings, settings_from
from kvplan_router.envoy.bootstrap import bootstrap
from kvplan_router.envoy.options import EnvoyOptions
from kvplan_router.settings import read_settings

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "manifests"
CHART = ROOT / "charts" / "kvplan"


def documents(file: Path) -> list[dict[str, Any]]:
    return [found for found in yaml.safe_load_all(file.read_text()) if found]


@pytest.mark.parametrize("folder", ["base", "overlays/namespaced"])
def test_the_settings_are_taken_by_the_operator(folder: str) -> None:
    settings = settings_from((MANIFESTS / folder / "settings.yaml").read_text(), {})
    assert settings.prometheus.profiles["default"].url
    assert settings.namespaces == (() if folder == "base" else ("serving",))


def variables(container: dict[str, Any]) -> dict[str, str]:
    """What a container sets, references expanded by what a kubelet would know."""
    known = {"POD_NAMESPACE": "default", "POD_IP": "10.0.0.7", "FLEET": "assistants", "POD_NAME": "pod"}
    values = {entry["name"]: entry.get("value", known.get(entry["name"], "")) for entry in container["env"]}
    return {name: re.sub(r"\$\((\w+)\)", lambda found: values[found[1]], value) for name, value in values.items()}


def test_the_variables_of_the_router_are_settings_it_takes() -> None:
    (deployment,) = documents(MANIFESTS / "router" / "deployment.yaml")
    router, envoy = deployment["spec"]["template"]["spec"]["containers"]
    settings = read_settings([], variables(router))
    assert (settings.fleet_label, settings.identity) == ("default/assistants", "10.0.0.7:9004")
    assert settings.listen == "127.0.0.1:9002"
    assert EnvoyOptions().endpoints_file == str(settings.endpoints_file)
    assert str(settings.endpoints_file) in envoy["args"][0]


def test_a_pod_may_take_longer_to_go_than_its_drain() -> None:
    (deployment,) = documents(MANIFESTS / "router" / "deployment.yaml")
    pod = deployment["spec"]["template"]["spec"]
    hook = pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    limit = next(int(word.partition("=")[2]) for word in hook if word.startswith("--limit-seconds="))
    assert pod["terminationGracePeriodSeconds"] > limit


def test_envoys_configuration_is_what_the_command_prints() -> None:
    own = yaml.safe_load((MANIFESTS / "envoy" / "own-envoy.yaml").read_text())
    assert yaml.safe_load((MANIFESTS / "router" / "envoy.yaml").read_text()) == own == bootstrap(EnvoyOptions())


def granted() -> set[tuple[str, str, str]]:
    rules = [rule for item in documents(MANIFESTS / "base" / "rbac.yaml") for rule in item.get("rules", [])]
    return {(g, r, v) for rule in rules for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]}


def needed(need: Need) -> set[tuple[str, str, str]]:
    resource = "/".join(filter(None, (need.resource.plural, need.subresource)))
    return {(need.resource.group, resource, verb) for verb in need.verbs}


def test_the_roles_grant_what_the_operator_asks_for_at_its_start() -> None:
    wanted = set().union(*map(needed, (*NEEDS, WORKER_SET_NEED, LEASE_NEED)))
    assert wanted - granted() == set()


def test_no_role_names_secrets_or_everything() -> None:
    rules = [
        rule for file in MANIFESTS.rglob("rbac.yaml") for item in documents(file) for rule in item.get("rules", [])
    ]
    named = {word for rule in rules for words in rule.values() for word in words}
    assert named.isdisjoint({"*", "secrets", "escalate", "bind", "impersonate"})


def test_chart_manifests_and_package_are_of_one_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    tags = {
        image["newTag"]
        for folder in ("base", "router")
        for image in yaml.safe_load((MANIFESTS / folder / "kustomization.yaml").read_text())["images"]
    }
    assert {chart["version"], chart["appVersion"], *tags} == {version}


def test_the_charts_copies_and_its_table_of_values_are_up_to_date() -> None:
    assert runpy.run_path(str(ROOT / "tools" / "chart.py"))["stale"]() == []


def names(model: type[BaseModel]) -> dict[str, Any]:
    """Names of a settings class, those of its sections below them."""
    return {
        name: names(field.annotation) if _is_section(field.annotation) else None
        for name, field in model.model_fields.items()
    }


def _is_section(annotation: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def properties(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: properties(part) if "properties" in part else None for name, part in schema["properties"].items()}


def test_the_chart_takes_every_setting_that_is_not_its_own_business_and_no_other() -> None:
    operator = json.loads((CHART / "values.schema.json").read_text())["properties"]["operator"]["properties"]
    taken = properties(operator["settings"])
    known = names(Settings)
    for own in ("namespaces", "prometheus", "kubeconfig", "listen"):
        del known[own]
    for own in ("namespace", "name", "identity"):
        del known["lease"][own]
    assert taken == known
    profile = operator["prometheus"]["properties"]["profiles"]["additionalProperties"]
    assert set(profile["properties"]) == set(PrometheusConnection.model_fields)


def test_every_value_has_a_meaning_and_every_meaning_a_value() -> None:
    rows = set(re.findall(r"^\| `([\w.]+)` \|", (ROOT / "docs" / "install.md").read_text(), re.MULTILINE))
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert {
        path for path in paths(values) if not any(path == row or path.startswith(f"{row}.") for row in rows)
    } == set()


def paths(values: dict[str, Any], before: str = "") -> set[str]:
    """Path of every value that is no mapping, and of every empty one."""
    found: set[str] = set()
    for name, value in values.items():
        found |= paths(value, f"{before}{name}.") if isinstance(value, dict) and value else {f"{before}{name}"}
    return found
