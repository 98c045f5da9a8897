"""A repository that holds the Deployment which its fleet adopts: who writes replicas and the command line.

The Kustomization ignores these fields as `manifests/gitops/flux.yaml` says; without that kvplan notices the fight.
"""

from typing import Any

import pytest
import yaml

from e2e.gitops.audit import writes
from e2e.gitops.flux import Flux
from e2e.gitops.repository import Repository
from e2e.gitops.sync import Sync
from e2e.harness.cluster import Cluster
from e2e.harness.paths import REPOSITORY
from e2e.harness.readiness import until
from e2e.operator.operator_process import SAMPLE, Operator

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_control_plane")]

EXAMPLE = REPOSITORY / "manifests" / "gitops" / "flux.yaml"
IGNORE = list(yaml.safe_load_all(EXAMPLE.read_text()))[-1]["spec"]["ignore"]
LOOK = "2s"
REST_SECONDS = 30


def follow(flux: Flux, operator: Operator, repository: Repository, **more: object) -> Sync:
    """Let Flux keep a fleet in Auto mode and the Deployment that it adopts; restarts are not what is short."""
    manifests: list[dict[str, Any]] = list(yaml.safe_load_all(SAMPLE.with_name("adopted.yaml").read_text()))
    for fleet in (item for item in manifests if item["kind"] == "ServingFleet"):
        fleet["spec"] |= {"planPolicy": {"mode": "Auto"}, "replan": {"maxRestartsPerHour": 100}}
    repository.write("all.yaml", *manifests)
    repository.push("A Deployment and the fleet that adopts it")
    return flux.follow(repository, operator.namespace, interval=LOOK, **more)


def arguments(operator: Operator) -> list[str]:
    """Of the engine in the adopted Deployment."""
    found: list[str] = operator.get("deployment", "llm")["spec"]["template"]["spec"]["containers"][0]["args"]
    return found


def reason(operator: Operator, type_: str) -> str:
    """Of a condition of the fleet; empty before there is one."""
    for fleet in operator.get("fleet")["items"]:
        for condition in fleet["status"].get("conditions", ()):
            if condition["type"] == type_:
                return str(condition["reason"])
    return ""


def test_flux_leaves_alone_what_it_is_told_to_ignore(
    cluster: Cluster, flux: Flux, operator: Operator, repository: Repository
) -> None:
    sync = follow(flux, operator, repository, ignore=IGNORE)
    sync.wait_ready(150)
    operator.wait_for("Ready", "AsPlanned", seconds=90)
    planned = arguments(operator)
    assert "--max-num-seqs=4" not in planned

    start = operator.audit_position()
    assert not operator.process.wait(REST_SECONDS)
    sync.now()
    seen = list(writes(cluster.plane.audit_log, start, operator.namespace))
    assert [write for write in seen if write.resource != "events"] == []
    assert arguments(operator) == planned
    sync.delete()


@pytest.mark.slow
def test_without_that_kvplan_gives_way_to_flux_and_says_so(
    flux: Flux, operator: Operator, repository: Repository
) -> None:
    sync = follow(flux, operator, repository, wait=False)
    until(lambda: reason(operator, "Contended") == "ForeignWriter", "a fight noticed", operator.process, 300)
    assert reason(operator, "Stalled") == "ForeignWriter"
    sync.now()
    assert "--max-num-seqs=4" in arguments(operator)
    sync.delete()
