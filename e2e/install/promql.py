"""Queries of alert rules and dashboard, and the names of the metrics in them.

Inputs: the monitoring component; a Prometheus that parses. Outputs: queries by where they stand, metric names.
"""

import json
import re
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

import yaml

from e2e.harness.paths import REPOSITORY

MONITORING = REPOSITORY / "manifests" / "components" / "monitoring"
_OF_A_HISTOGRAM = re.compile(r"_(bucket|sum|count)$")
_VARIABLE = re.compile(r"\$\w+")


def rule_groups() -> dict[str, Any]:
    """The rules as Prometheus reads them."""
    found: dict[str, Any] = yaml.safe_load((MONITORING / "alerts.yaml").read_text())["spec"]
    return found


def queries() -> dict[str, str]:
    """Every query by the title of its alert or panel; Grafana's variables match everything."""
    alerts = {rule["alert"]: rule["expr"] for group in rule_groups()["groups"] for rule in group["rules"]}
    panels = json.loads((MONITORING / "dashboard.json").read_text())["panels"]
    shown = {
        f"{panel['title']} {target['refId']}": _VARIABLE.sub(".*", target["expr"])
        for panel in panels
        for target in panel.get("targets", [])
    }
    return {**alerts, **shown}


def metrics_of(prometheus: str, query: str) -> set[str]:
    """Names of the metrics that a query reads; a histogram's parts are the histogram.

    Raises:
        urllib.error.HTTPError: Prometheus does not understand the query.
    """
    url = f"{prometheus}/api/v1/parse_query?{urllib.parse.urlencode({'query': query})}"
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - loopback
        tree = json.load(answer)["data"]
    return {_OF_A_HISTOGRAM.sub("", name) for name in _selectors(tree)}


def _selectors(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for each in node:
            yield from _selectors(each)
    elif isinstance(node, dict):
        if node.get("type") in ("vectorSelector", "matrixSelector"):
            yield node["name"]
        for each in node.values():
            yield from _selectors(each)
