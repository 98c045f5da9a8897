"""What people see: the columns of `kubectl get`, short names, the category, and `kubectl explain`."""

import copy
from typing import Any

import pytest

from e2e.crds.api import Api
from e2e.crds.documents import COMPLETE, named
from e2e.harness.cluster import Cluster
from e2e.harness.paths import CRDS

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def printed(api: Api, shelf: str) -> dict[str, str]:
    """Make one object of each kind with a status in which the conditions of its columns are set; names by kind."""
    return {kind: observed(api, shelf, document) for kind, document in COMPLETE.items()}


def observed(api: Api, shelf: str, document: dict[str, Any]) -> str:
    made = api.create(named(document, "printed"), shelf).body
    status = copy.deepcopy(document["status"])
    (condition,) = status["conditions"]
    extra = [{**condition, "type": type_} for type_ in ("Accepted", "Ready") if type_ != condition["type"]]
    status["conditions"] = [condition, *extra]
    answer = api.replace({**made, "status": status}, shelf, "/status")
    assert answer.accepted, answer.problems
    return str(made["metadata"]["name"])


def table(cluster: Cluster, shelf: str, *arguments: str) -> dict[str, str]:
    """One printed row as a mapping from heading to cell, the age left out; columns are two blanks or more apart."""
    heading, row = cluster.kubectl("get", *arguments, f"--namespace={shelf}").splitlines()
    starts = [at for at, letter in enumerate(heading) if letter != " " and (at == 0 or heading[at - 2 : at] == "  ")]
    spans = list(zip(starts, [*starts[1:], None], strict=True))
    cells = {heading[start:end].strip(): row[start:end].strip() for start, end in spans}
    assert cells.pop("AGE").endswith(("s", "m"))
    return cells


def test_a_fleet_says_what_is_in_force_and_what_waits(cluster: Cluster, shelf: str, printed: dict[str, str]) -> None:
    row = table(cluster, shelf, "fleet", printed["ServingFleet"])
    assert row == {
        "NAME": "printed", "READY": "False", "REASON": "AwaitingApproval", "POLICY": "Approve",
        "PLAN": "complete-0f4b1c7e9a", "CANDIDATE": "complete-1a2b3c4d5e", "SAVES": "84", "GPUS": "16", "OF": "48",
    }  # fmt: skip
    wide = table(cluster, shelf, "fleet", printed["ServingFleet"], "--output=wide")
    assert wide == row | {
        "DIGEST": "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f809",
        "MESSAGE": "Put the digest of complete-1a2b3c4d5e into spec.acceptedPlan.",
    }


def test_a_class_says_its_load_and_its_promise(cluster: Cluster, shelf: str, printed: dict[str, str]) -> None:
    row = table(cluster, shelf, "rclass", printed["RequestClass"])
    assert row == {
        "NAME": "printed", "FLEET": "complete", "READY": "True", "REASON": "AsPlanned", "RATE-MILLI": "23900",
        "SLO-MS": "15000", "P99-MS": "12900", "RESERVED": "4544", "DATA": "Fresh",
    }  # fmt: skip
    wide = table(cluster, shelf, "rclass", printed["RequestClass"], "--output=wide")
    assert wide == row | {"MESSAGE": "18400 requests in the window."}


def test_a_plan_says_how_far_it_is(cluster: Cluster, shelf: str, printed: dict[str, str]) -> None:
    row = table(cluster, shelf, "rplan", printed["RoutingPlan"])
    assert row == {
        "NAME": "complete-printed", "FLEET": "complete", "ACCEPTED": "True", "APPLIED": "True",
        "REASON": "AsPlanned", "STEP": "2", "OF": "5", "WAITING-FOR": "slot tp2-1 to drain", "GAP-MILLI": "3",
    }  # fmt: skip
    wide = table(cluster, shelf, "rplan", printed["RoutingPlan"], "--output=wide")
    assert wide == row | {"COST-MILLI": "51234000", "MESSAGE": "In force since 08:00."}


def test_the_category_lists_all_three_kinds(cluster: Cluster, shelf: str, printed: dict[str, str]) -> None:
    listed = cluster.kubectl("get", "kvplan", f"--namespace={shelf}", "--output=name").split()
    wanted = {f"{kind.lower()}.kvplan.dev/{name}" for kind, name in printed.items()}
    assert wanted <= set(listed)


def test_explain_says_what_a_field_is_for_and_what_it_may_hold(cluster: Cluster) -> None:
    text = " ".join(cluster.kubectl("explain", "fleet.spec.planPolicy.mode").split())
    assert "FIELD: mode <string>" in text
    assert "ENUM: DryRun Approve Auto" in text
    assert "DryRun only proposes, Approve applies the accepted plan, Auto what passes the gates." in text


def test_the_api_server_finds_nothing_to_complain_about_in_the_schemas(cluster: Cluster) -> None:
    for crd in cluster.kubectl.get("-f", str(CRDS))["items"]:
        conditions = {each["type"]: each["status"] for each in crd["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}


@pytest.mark.parametrize("options", [(), ("--server-side",)], ids=["client-side", "server-side"])
def test_a_dry_run_of_the_schemas_warns_of_nothing(cluster: Cluster, options: tuple[str, ...]) -> None:
    said = cluster.kubectl("apply", "--dry-run=server", "--warnings-as-errors", *options, "-f", str(CRDS))
    assert len(said.splitlines()) == 3
