"""What the doctor asks of an API server: pods and services by proxy, the rights of the operator, its settings."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kvplan_cli.cluster.session import Session
from kvplan_cli.doctor.attempts import attempt
from kvplan_cli.doctor.findings import Unknown
from kvplan_cli.doctor.proxies import engine_version, prometheus_answer, router_state
from kvplan_cli.doctor.rights import missing_rights
from kvplan_cli.doctor.settings import operator_settings
from kvplan_operator.settings import Settings
from kvplan_solver.cacheroute.router_state import RouterReport, write_state
from tests.kube_api import Answer, Api, served, status

Object = dict[str, Any]


def talk(directory: Path, job: Callable[[Session], Any], *answers: Answer) -> tuple[Any, Api]:
    """What a job returns on a server that says these things, and what the server was asked."""

    async def conversation() -> tuple[Any, Api]:
        async with served(directory, *answers) as (client, api):
            return await job(Session(client, "team", client._transport)), api

    return asyncio.run(conversation())


def test_a_router_is_asked_through_the_api_server(tmp_path: Path) -> None:
    said = RouterReport("r", epoch=3, generation=4)
    found, api = talk(tmp_path, lambda s: router_state(s, "router-0"), Answer(write_state(said)))
    assert found == said
    assert api.asked[0].path == "/api/v1/namespaces/team/pods/router-0:9090/proxy/state"


def test_a_router_that_says_nothing_usable_is_unknown(tmp_path: Path) -> None:
    found, _ = talk(tmp_path, lambda s: attempt(router_state(s, "r")), Answer({"format": 9}))
    assert isinstance(found, Unknown)
    found, _ = talk(
        tmp_path, lambda s: attempt(router_state(s, "r")), status(503, "ServiceUnavailable", "no endpoints")
    )
    assert found == Unknown("ask pod r:9090 for /state: no endpoints")


def test_an_engine_says_its_version(tmp_path: Path) -> None:
    assert talk(tmp_path, lambda s: engine_version(s, "e"), Answer({"version": "0.32.0"}))[0] == "0.32.0"
    assert isinstance(talk(tmp_path, lambda s: engine_version(s, "e"), Answer({}))[0], Unknown)


ADDRESSES = {
    "http://prometheus.monitoring.svc:9090": "services/prometheus:9090/proxy/api/v1/query",
    "http://p.m.svc.cluster.local": "services/p:80/proxy/api/v1/query",
    "https://p.m.svc/select/0/prometheus/": "services/https:p:443/proxy/select/0/prometheus/api/v1/query",
}


@pytest.mark.parametrize("url", ADDRESSES)
def test_a_prometheus_inside_the_cluster_is_asked_through_its_service(url: str, tmp_path: Path) -> None:
    found, api = talk(tmp_path, lambda s: prometheus_answer(s, url), Answer({"status": "success"}))
    assert found == f"{url} answers"
    assert api.asked[0].path.endswith(ADDRESSES[url])
    assert api.asked[0].query == {"query": "vector(1)"}
    assert talk(tmp_path, lambda s: prometheus_answer(s, url), Answer({}))[0].endswith("but not as a Prometheus")


def test_a_prometheus_elsewhere_is_not_asked(tmp_path: Path) -> None:
    found, api = talk(tmp_path, lambda s: prometheus_answer(s, "https://prometheus.example.org"), Answer())
    assert found is None
    assert api.asked == []


def deployment(*env: Object, config_map: str | None = "kvplan-settings") -> Object:
    volumes = [{"name": "tmp", "emptyDir": {}}]
    volumes += [{"name": "settings", "configMap": {"name": config_map}}] if config_map else []
    pod = {"serviceAccountName": "operator", "volumes": volumes, "containers": [{"name": "operator", "env": list(env)}]}
    return {"metadata": {"namespace": "system", "name": "kvplan-operator"}, "spec": {"template": {"spec": pod}}}


NOT_INSTALLED = Answer("404 page not found", 404)


def test_missing_rights_are_told_by_kind_for_the_operators_account(tmp_path: Path) -> None:
    refused = Answer({"status": {"allowed": False}})
    settings = Settings(namespaces=("team",))
    found, api = talk(tmp_path, lambda s: missing_rights(s, deployment(), settings), NOT_INSTALLED, refused)
    assert "permission to list, watch nodes in the whole cluster is missing" in found
    assert "permission to patch servingfleets.kvplan.dev/status in namespace team is missing" in found
    assert any("leases.coordination.k8s.io in namespace system" in sentence for sentence in found)
    assert not any("leaderworkersets" in sentence for sentence in found)
    users = {asked.body["spec"]["user"] for asked in api.asked if asked.method == "POST"}
    assert users == {"system:serviceaccount:system:operator"}


def test_rights_that_are_there_are_no_finding(tmp_path: Path) -> None:
    allowed = Answer({"status": {"allowed": True}})
    assert talk(tmp_path, lambda s: missing_rights(s, deployment(), None), NOT_INSTALLED, allowed)[0] == ()


def test_settings_are_those_of_the_config_map_and_of_variables_with_a_value(tmp_path: Path) -> None:
    profile = "prometheus: {profiles: {default: {url: 'http://p.m.svc'}}}"
    text = Answer({"data": {"settings.yaml": f"namespaces: [a]\n{profile}\n"}})
    named, own = (
        {"name": "KVPLAN_NAMESPACES", "value": "b,c"},
        {"name": "KVPLAN_LEASE_IDENTITY", "value": "$(POD_NAME)"},
    )
    found, _ = talk(tmp_path, lambda s: operator_settings(s, deployment(named, own)), text)
    assert found.namespaces == ("b", "c")
    assert found.prometheus.profiles["default"].url == "http://p.m.svc"
    assert found.lease.identity == ""


HIDDEN = {
    "a ConfigMap that may not be read": status(403, "Forbidden", "cannot get"),
    "a ConfigMap that is not there": status(404, "NotFound", "not found"),
    "settings that are refused": Answer({"data": {"settings.yaml": "namespaces: 7"}}),
}


@pytest.mark.parametrize("case", HIDDEN)
def test_settings_are_not_visible_in(case: str, tmp_path: Path) -> None:
    assert talk(tmp_path, lambda s: operator_settings(s, deployment()), HIDDEN[case])[0] is None
