"""A new version of the operator finds objects that an older one wrote: statuses with fewer fields, another index.

What older versions lacked is played by taking fields away. Whatever is missing is found again from the cluster; no
engine restarts for it.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.harness.cluster import Cluster
from e2e.harness.readiness import until
from e2e.operator.operator_process import FLEET, Operator

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_control_plane")]

INDEX = f"{FLEET}-table"


@pytest.fixture
def operator(cluster: Cluster, namespace: str) -> Iterator[Operator]:
    """An operator that was ended after a plan had come in force."""
    started = Operator(cluster, namespace)
    started.apply_sample()
    started.wait_for_candidate()
    started.accept(started.get("fleet", FLEET)["status"]["candidatePlan"]["digest"])
    started.wait_for("Ready", "AsPlanned")
    started.process.stop()
    yield started
    started.process.stop()


def keep(operator: Operator, kind: str, name: str, *fields: str) -> None:
    """Take every field away from a status but these."""
    status = operator.get(kind, name)["status"]
    kept = {field: status[field] for field in fields if field in status}
    patch = json.dumps([{"op": "replace", "path": "/status", "value": kept}])
    place = f"--namespace={operator.namespace}"
    operator.cluster.kubectl("patch", kind, name, place, "--type=json", "--subresource=status", "--patch", patch)


def uids(operator: Operator) -> set[str]:
    """Of the engines."""
    return {pod["metadata"]["uid"] for pod in operator.get("pods")["items"]}


def state(operator: Operator) -> dict[str, Any]:
    """What must be the same again, however it is found."""
    status = operator.get("fleet", FLEET)["status"]
    names = ("currentPlan", "groups", "gpus")
    classes = {c["metadata"]["name"]: c["status"].get("reservationTokens") for c in operator.get("rclass")["items"]}
    return {"classes": classes, **{name: status.get(name) for name in names}}


def start_and_wait(operator: Operator, before: dict[str, Any]) -> None:
    """Start it again; return when all is as it was."""
    operator.process.start()
    until(lambda: state(operator) == before, "statuses as before", operator.process, 90)
    operator.wait_for("Ready", "AsPlanned")


def test_statuses_with_few_fields_are_completed_and_no_engine_restarts(operator: Operator) -> None:
    before, serving = state(operator), uids(operator)
    keep(operator, "fleet", FLEET, "observedGeneration", "conditions", "currentPlan")
    for plan in operator.get("rplan")["items"]:
        keep(operator, "rplan", plan["metadata"]["name"], "observedGeneration", "conditions")
    for request_class in operator.get("rclass")["items"]:
        keep(operator, "rclass", request_class["metadata"]["name"], "observedGeneration")
    start_and_wait(operator, before)
    assert uids(operator) == serving


def test_statuses_that_were_lost_altogether_are_found_again(operator: Operator) -> None:
    before, serving = state(operator), uids(operator)
    keep(operator, "fleet", FLEET)
    for request_class in operator.get("rclass")["items"]:
        keep(operator, "rclass", request_class["metadata"]["name"])
    start_and_wait(operator, before)
    assert uids(operator) == serving


@pytest.mark.parametrize("text", ["{}", "not json", '{"format": 99}', ""])
def test_an_index_that_cannot_be_read_is_written_anew(operator: Operator, text: str) -> None:
    before, serving = state(operator), uids(operator)
    patch = json.dumps({"data": {"index.json": text}})
    place = f"--namespace={operator.namespace}"
    operator.cluster.kubectl("patch", "configmap", INDEX, place, "--type=merge", "--patch", patch)
    start_and_wait(operator, before)

    def published() -> bool:
        found = operator.get("configmap", INDEX)["data"]["index.json"]
        return bool(found != text and json.loads(found)["mode"] == "plan")

    until(published, "the index anew", operator.process)
    assert uids(operator) == serving
