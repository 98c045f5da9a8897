"""Status as a subresource: what an object starts with, who writes what, and what a status may not hold."""

import copy
from typing import Any

import pytest

from e2e.crds.api import Api
from e2e.crds.documents import COMPLETE, SMALLEST, named, without_empty
from kvplan_operator.api.manifests import parse_object

pytestmark = pytest.mark.e2e

KINDS = sorted(SMALLEST)
REST = (
    "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_starts_unobserved_whatever_status_it_comes_with(api: Api, shelf: str, kind: str) -> None:
    document = {**named(COMPLETE[kind], "unobserved"), "status": COMPLETE[kind]["status"]}
    assert api.create(document, shelf).body["status"] == {"observedGeneration": -1}


@pytest.mark.parametrize("kind", KINDS)
def test_a_complete_status_is_kept_and_leaves_the_spec_alone(api: Api, shelf: str, kind: str) -> None:
    made = api.create(named(SMALLEST[kind], "observed"), shelf).body
    status = COMPLETE[kind]["status"]
    written = api.replace({**made, "spec": COMPLETE[kind]["spec"], "status": status}, shelf, "/status").body
    assert (written["spec"], written["metadata"]["generation"]) == (made["spec"], 1)
    assert without_empty(written["status"]) == without_empty(status)
    assert parse_object(written).to_wire()["status"] == parse_object(COMPLETE[kind]).to_wire()["status"]


@pytest.mark.parametrize("kind", KINDS)
def test_writing_the_object_leaves_the_status_alone(api: Api, shelf: str, kind: str) -> None:
    made = api.create(named(SMALLEST[kind], "written"), shelf).body
    made["metadata"]["labels"] = {"team": "a"}
    assert api.replace({**made, "status": COMPLETE[kind]["status"]}, shelf).body["status"] == {"observedGeneration": -1}


def test_a_status_without_the_generation_says_that_nothing_was_observed(api: Api, shelf: str) -> None:
    made = api.create(named(SMALLEST["ServingFleet"], "silent"), shelf).body
    written = api.replace({**made, "status": {"conditions": []}}, shelf, "/status")
    assert written.body["status"]["observedGeneration"] == -1


def invalid(field: str, value: object, words: str) -> str:
    """How the API server puts a value that the schema of a field refuses; it names the field twice, once in short."""
    return f"{field}: Invalid value: {value}: {field.removeprefix('status.')} in body {words}"


CONDITION = {**COMPLETE["ServingFleet"]["status"]["conditions"][0]}
TIME = "status.conditions[0].lastTransitionTime"
PATTERN = (
    "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6})?Z$"
)
WRONG: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "a generation below -1": (
        {"observedGeneration": -2},
        (invalid("status.observedGeneration", -2, "should be greater than or equal to -1"),),
    ),
    "a condition without a reason": (
        {"conditions": [{name: value for name, value in CONDITION.items() if name != "reason"}]},
        ("status.conditions[0].reason: Required value", REST),
    ),
    "two conditions of one type": (
        {"conditions": [CONDITION, {**CONDITION, "status": "True"}]},
        ('status.conditions[1]: Duplicate value: {"type":"Ready"}',),
    ),
    "a condition that is true or false only": (
        {"conditions": [{**CONDITION, "status": True}]},
        (
            invalid("status.conditions[0].status", '"boolean"', 'must be of type string: "boolean"'),
            'status.conditions[0].status: Unsupported value: true: supported values: "True", "False", "Unknown"',
            REST,
        ),
    ),
    "a time in another zone": (
        {"conditions": [{**CONDITION, "lastTransitionTime": "2026-01-31T08:00:00+01:00"}]},
        (invalid(TIME, '"2026-01-31T08:00:00+01:00"', f"should match '{PATTERN}'"),),
    ),
    "a list of times": (
        {"conditions": [{**CONDITION, "lastTransitionTime": ["2026-01-31T08:00:00Z"]}]},
        (invalid(TIME, '"array"', 'must be of type string: "array"'), REST),
    ),
    "a plan without its digest": (
        {"currentPlan": {"name": "chat-0123456789"}},
        ("status.currentPlan.digest: Required value", REST),
    ),
    "thirty-three groups": (
        {"groups": [{"configuration": f"tp{number}"} for number in range(33)]},
        ("status.groups: Too many: 33: must have at most 32 items", REST),
    ),
}


@pytest.fixture(scope="module")
def fleet(api: Api, shelf: str) -> dict[str, Any]:
    return api.create(named(SMALLEST["ServingFleet"], "refusing"), shelf).body


@pytest.mark.parametrize(("status", "says"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_status_is_refused_in_these_words(
    api: Api, shelf: str, fleet: dict[str, Any], status: dict[str, Any], says: tuple[str, ...]
) -> None:
    answer = api.replace({**copy.deepcopy(fleet), "status": status}, shelf, "/status", dryRun="All")
    assert sorted(answer.problems) == sorted(says)
