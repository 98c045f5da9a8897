"""The API server accepts a document if and only if pydantic does, whatever the document.

Exceptions, shown in test_strictness: pydantic refuses null and unknown fields everywhere, and 7.0 where 7 belongs.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from e2e.crds.api import Answer, Api
from e2e.crds.documents import COMPLETE, named, refusal
from e2e.crds.edits import Edit, edited
from kvplan_operator.api.crdgen import object_schema
from kvplan_operator.api.kinds import KINDS

pytestmark = pytest.mark.e2e

SCHEMAS = {kind.name: object_schema(kind) for kind in KINDS}
EDITS = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)), min_size=1, max_size=3)
STRICT = {"dryRun": "All", "fieldValidation": "Strict"}


def agree(document: dict[str, Any], answer: Answer) -> None:
    told = refusal(document)
    assert answer.accepted == (told is None), (
        f"API server: {answer.problems or 'accepted'}; pydantic: {told or 'accepted'}"
    )


@pytest.mark.parametrize("kind", sorted(COMPLETE))
@settings(max_examples=200, deadline=None, derandomize=True)
@given(edits=EDITS)
def test_both_take_the_same_specs(api: Api, kind: str, edits: list[Edit]) -> None:
    document = edited(named(COMPLETE[kind], "edited"), "spec", SCHEMAS[kind], edits)
    agree(document, api.create(document, "default", **STRICT))


@pytest.fixture(scope="module")
def made(api: Api, shelf: str) -> dict[str, dict[str, Any]]:
    """One object of each kind, whose status is then written in dry runs."""
    return {kind: api.create(named(document, "edited"), shelf).body for kind, document in COMPLETE.items()}


@pytest.mark.parametrize("kind", sorted(COMPLETE))
@settings(max_examples=100, deadline=None, derandomize=True)
@given(edits=EDITS)
def test_both_take_the_same_statuses(
    api: Api, shelf: str, made: dict[str, dict[str, Any]], kind: str, edits: list[Edit]
) -> None:
    document = edited({**made[kind], "status": COMPLETE[kind]["status"]}, "status", SCHEMAS[kind], edits)
    agree(document, api.replace(document, shelf, "/status", **STRICT))


@pytest.mark.parametrize("kind", sorted(COMPLETE))
@settings(max_examples=60, deadline=None, derandomize=True)
@given(edits=EDITS)
def test_both_refuse_every_unknown_field(api: Api, kind: str, edits: list[Edit]) -> None:
    """One more field in a document that may be right or wrong otherwise."""
    document = edited(named(COMPLETE[kind], "unknown"), "spec", SCHEMAS[kind], edits)
    if isinstance(document.get("spec"), dict):
        document["spec"]["surprise"] = 1
    assert refusal(document)
    assert not api.create(document, "default", **STRICT).accepted
