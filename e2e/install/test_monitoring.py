"""Alert rules and dashboard in a real Prometheus: they load, they evaluate, and every metric in them is exported."""

import json
import re
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from e2e.harness.commands import HOST
from e2e.harness.paths import REPOSITORY
from e2e.harness.ports import PortLease
from e2e.harness.process import Process
from e2e.harness.prometheus import command, query
from e2e.harness.readiness import answers, until
from e2e.install.promql import metrics_of, queries, rule_groups
from kvplan_operator.metrics import Metrics
from kvplan_router.core.decide import Router
from kvplan_router.core.settings import CoreSettings
from kvplan_router.metrics.collector import Moment, RouterCollector
from kvplan_router.transport.messages import InFlightMode
from tests.fake_prometheus import body, serving

pytest.importorskip("kvplan_engine", reason="the engine stand-in is not installed: pip install e2e/engine")
pytestmark = pytest.mark.e2e


@contextmanager
def prometheus_of(*scraped: str) -> Iterator[tuple[str, Process]]:
    """URL of a Prometheus that has evaluated every rule, over what these ``host:port`` export; and its process."""
    ports = PortLease()
    with tempfile.TemporaryDirectory(prefix="kvplan-rules-") as name:
        directory = Path(name)
        (directory / "rules.yaml").write_text(yaml.safe_dump(rule_groups()))
        settings = {
            "global": {"evaluation_interval": "1s", "scrape_interval": "1s"},
            "rule_files": [str(directory / "rules.yaml")],
            "scrape_configs": [{"job_name": "pages", "static_configs": [{"targets": list(scraped)}]}],
        }
        (directory / "prometheus.yaml").write_text(yaml.safe_dump(settings))
        port = ports.take()
        server = Process(command(directory, port), directory)
        server.start()
        try:
            url = f"http://{HOST}:{port}"
            until(lambda: answers(f"{url}/-/ready") and evaluated(url), "every rule evaluated", server)
            yield url, server
        finally:
            server.stop()
            ports.release()


@pytest.fixture(scope="module")
def prometheus() -> Iterator[str]:
    """One that scrapes nothing."""
    with prometheus_of() as (url, _):
        yield url


def rules(prometheus: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{prometheus}/api/v1/rules", timeout=10) as answer:  # noqa: S310 - loopback
        groups = json.load(answer)["data"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


def evaluated(prometheus: str) -> bool:
    return all(rule["health"] != "unknown" for rule in rules(prometheus))


def test_every_alert_is_loaded_and_evaluates(prometheus: str) -> None:
    loaded = {rule["name"]: rule for rule in rules(prometheus)}
    assert set(loaded) == {rule["alert"] for group in rule_groups()["groups"] for rule in group["rules"]}
    assert {name: rule["health"] for name, rule in loaded.items()} == dict.fromkeys(loaded, "ok")


def test_without_any_operator_the_alert_for_it_rises_and_no_other(prometheus: str) -> None:
    assert [rule["name"] for rule in rules(prometheus) if rule["state"] != "inactive"] == ["KvplanNoLeader"]


@pytest.mark.parametrize(("router", "rises"), [(41, True), (42, False)])
def test_a_table_is_old_only_while_a_newer_one_is_published(router: int, rises: bool) -> None:
    fleet = '{fleet="default/fleet"'
    text = (
        f"kvplan_operator_table_generation{fleet}}} 42\n"
        f'kvplan_router_table_generation{fleet},pod="a"}} {router}\n'
        f'kvplan_router_table_age_seconds{fleet},pod="a"}} 86400\n'
    )
    page = body(text.encode(), Content_Type="text/plain; version=0.0.4")
    with serving(page) as exporter, prometheus_of(exporter.url.removeprefix("http://")) as (url, server):
        until(lambda: bool(query(url, "kvplan_operator_table_generation == 42")), "a scrape", server)
        seen = evaluations(url, "KvplanTableOld")
        until(lambda: evaluations(url, "KvplanTableOld") > seen, "the rule evaluated on it", server)
        (state,) = [rule["state"] for rule in rules(url) if rule["name"] == "KvplanTableOld"]
    assert state == ("pending" if rises else "inactive")


def evaluations(prometheus: str, alert: str) -> str:
    """When a rule was evaluated last; later times sort behind earlier ones."""
    return next(str(rule["lastEvaluation"]) for rule in rules(prometheus) if rule["name"] == alert)


def exported_by_engines() -> set[str]:
    from kvplan_engine.arguments.parser import parse
    from kvplan_engine.core.scheduler import Scheduler
    from kvplan_engine.metrics.engine_metrics import EngineMetrics
    from kvplan_engine.settings import settings_of

    settings = settings_of(parse(["serve", "org/model"], {}))
    return families(generate_latest(EngineMetrics(settings, Scheduler(settings.limits)).registry).decode())


def families(text: str) -> set[str]:
    found = text_string_to_metric_families(text)
    return {f"{family.name}_total" if family.type == "counter" else family.name for family in found}


def exported_by_routers() -> set[str]:
    router = Router(b"a secret of the test", CoreSettings(), Random(7))
    moment = Moment(router.state(), router.measurements(), 1.0, {}, InFlightMode.TRAILERS)
    found = RouterCollector("default/fleet", moment).collect()
    return {f"{family.name}_total" if family.type == "counter" else family.name for family in found}


def test_every_metric_of_alerts_and_dashboard_is_exported(prometheus: str) -> None:
    known = exported_by_engines() | exported_by_routers() | families(generate_latest(Metrics().registry).decode())
    unknown = {title: metrics_of(prometheus, query) - known for title, query in queries().items()}
    assert {title: names for title, names in unknown.items() if names} == {}
    assert all(metrics_of(prometheus, query) for query in queries().values())


def test_every_alert_names_a_heading_of_the_runbook() -> None:
    runbook = (REPOSITORY / "docs" / "runbook.md").read_text()
    anchors = {heading.lower().replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", runbook, re.MULTILINE)}
    for group in rule_groups()["groups"]:
        for rule in group["rules"]:
            file, _, anchor = rule["annotations"]["runbook"].partition("#")
            assert (file, anchor in anchors) == ("docs/runbook.md", True), rule["alert"]
