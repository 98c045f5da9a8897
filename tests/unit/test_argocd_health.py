"""What Argo CD shows of kvplan's objects: its health script, run by Lua as Argo CD does."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from lupa.lua51 import LuaRuntime

FILE = Path(__file__).parents[2] / "manifests" / "gitops" / "argocd-health.yaml"
SCRIPTS = yaml.safe_load(FILE.read_text())["data"]
KINDS = ("ServingFleet", "RequestClass", "RoutingPlan")


def health(kind: str, item: dict[str, Any]) -> tuple[str, str]:
    lua = LuaRuntime(unpack_returned_tuples=True)
    lua.globals().obj = lua.table_from(item, recursive=True)
    found = lua.execute(SCRIPTS[f"resource.customizations.health.kvplan.dev_{kind}"])
    return found["status"], found["message"]


def condition(type_: str, status: str, reason: str = "AsPlanned", message: str = "all is well") -> dict[str, str]:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def item(*conditions: dict[str, str], generation: int = 2, observed: int = 2, **spec: Any) -> dict[str, Any]:
    status = {"observedGeneration": observed, "conditions": list(conditions)}
    return {"metadata": {"generation": generation}, "spec": spec, "status": status}


READY, NOT_READY = condition("Ready", "True"), condition("Ready", "False", "Solving", "a plan is being computed")
STALLED = condition("Stalled", "True", "DrainUnconfirmed", "start the router")
MOVING = condition("Reconciling", "True", "RollingOut", "step 2 of 5")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("given", "status", "word"),
    [
        pytest.param({"metadata": {"generation": 1}}, "Progressing", "Not looked at", id="without status"),
        pytest.param(item(READY, observed=-1), "Progressing", "Not looked at", id="never looked at"),
        pytest.param(item(READY, observed=1), "Progressing", "Not looked at", id="a status of an older spec"),
        pytest.param(item(READY), "Healthy", "all is well", id="ready"),
        pytest.param(item(NOT_READY), "Progressing", "Solving", id="not ready yet"),
        pytest.param(item(READY, MOVING), "Progressing", "step 2 of 5", id="a rollout moves"),
        pytest.param(item(NOT_READY, STALLED, MOVING), "Degraded", "start the router", id="only a person can go on"),
        pytest.param(item(READY, suspend=True), "Suspended", "suspend", id="suspended"),
    ],
)
def test_health_follows_the_conditions(kind: str, given: dict[str, Any], status: str, word: str) -> None:
    shown, message = health(kind, given)
    assert shown == status
    assert word in message
