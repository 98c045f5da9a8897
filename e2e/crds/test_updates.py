"""What may change once an object is there, and what may not."""

import copy
from typing import Any

import pytest

from e2e.crds.api import APPLY_PATCH, MERGE_PATCH, Answer, Api
from e2e.crds.documents import COMPLETE, SMALLEST, named

pytestmark = pytest.mark.e2e

IMMUTABLE = ("spec: Invalid value: a plan never changes: create another one",)


@pytest.fixture(scope="module")
def plan(api: Api, shelf: str) -> dict[str, Any]:
    """A plan that was written once since it was made: that first write stores the default status."""
    made = api.create(named(COMPLETE["RoutingPlan"], "immutable"), shelf).body
    return api.replace(made, shelf).body


def changed(plan: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {**copy.deepcopy(plan), "spec": {**copy.deepcopy(plan["spec"]), **spec}}


CHANGES: dict[str, dict[str, Any]] = {
    "another method": {"method": "Literal"},
    "another digest of the inputs": {"inputsDigest": "0" * 64},
    "one more group": {"groups": [*COMPLETE["RoutingPlan"]["spec"]["groups"], {
        "configuration": "tp4", "replicas": 0, "kvCapacityTokens": 1, "budgetTokens": 1, "maxSequences": 1}]},
    "smaller blocks": {"blockTokens": 8},
}  # fmt: skip


@pytest.mark.parametrize("spec", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("how", ["replaced", "merged", "applied by force"])
def test_a_plan_never_changes(api: Api, shelf: str, plan: dict[str, Any], spec: dict[str, Any], how: str) -> None:
    document = changed(plan, **spec)
    assert write(api, shelf, document, how).problems == IMMUTABLE
    assert api.get(plan, shelf)["spec"] == plan["spec"]


def write(api: Api, shelf: str, document: dict[str, Any], how: str) -> Answer:
    if how == "replaced":
        return api.replace(document, shelf)
    partial = {name: document[name] for name in ("apiVersion", "kind", "spec")}
    partial["metadata"] = {"name": document["metadata"]["name"]}
    if how == "merged":
        return api.patch(partial, shelf, content=MERGE_PATCH)
    return api.patch(partial, shelf, content=APPLY_PATCH, fieldManager="git", force="true")


def test_a_plan_written_again_without_its_defaults_is_the_same_plan(api: Api, shelf: str, plan: dict[str, Any]) -> None:
    again = changed(plan)
    del again["spec"]["blockTokens"]
    answer = api.replace(again, shelf)
    assert (answer.status, answer.body["metadata"]["resourceVersion"]) == (200, plan["metadata"]["resourceVersion"])


def test_labels_and_owners_of_a_plan_may_change(api: Api, shelf: str) -> None:
    plan = api.create(named(COMPLETE["RoutingPlan"], "labelled"), shelf).body
    plan["metadata"]["labels"]["kvplan.dev/origin"] = "user"
    answer = api.replace(plan, shelf)
    assert (answer.status, answer.body["metadata"]["generation"]) == (200, 1)


@pytest.mark.parametrize("kind", ["ServingFleet", "RequestClass"])
def test_everything_in_a_fleet_and_in_a_class_may_change(api: Api, shelf: str, kind: str) -> None:
    before = api.create(named(COMPLETE[kind], "changing"), shelf).body
    answer = api.replace({**before, "spec": SMALLEST[kind]["spec"]}, shelf)
    assert answer.accepted, answer.problems
    assert answer.body["metadata"]["generation"] == before["metadata"]["generation"] + 1


def test_a_rule_holds_for_updates_too(api: Api, shelf: str) -> None:
    fleet = api.create(named(SMALLEST["ServingFleet"], "ruled"), shelf).body
    answer = api.patch({**fleet, "metadata": {"name": "ruled"}, "spec": {"nodes": {"minGpus": 2, "maxGpus": 1}}}, shelf)
    assert answer.problems == ("spec.nodes.minGpus: Invalid value: use a minGpus of at most maxGpus",)
