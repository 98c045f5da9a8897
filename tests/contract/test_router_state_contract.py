"""Golden files of the router-state contract: router and operator must both reproduce them.

``KVPLAN_REGENERATE=1`` rewrites the files from this implementation; review the difference like code.
"""

import json
import os
from pathlib import Path

import jsonschema
import pytest

from kvplan_solver.cacheroute.router_state import (
    STATE_BYTES_MAX,
    RouterMode,
    RouterReport,
    json_schema,
    read_state,
    write_state,
)
from kvplan_solver.errors import InvalidInput

GOLDEN = Path(__file__).parent / "router"
SCHEMA = Path(__file__).parents[2] / "docs/contracts/router-state.schema.json"
REGENERATE = os.environ.get("KVPLAN_REGENERATE") == "1"

REPORTS = {
    "starting": RouterReport(identity="router-7d9c-x2"),
    "planned": RouterReport(
        identity="router-7d9c-x2",
        mode=RouterMode.PLAN,
        epoch=1_760_000_000,
        generation=7,
        since=1_760_000_123,
        fingerprint="72173bdf763ca064",
        in_flight={"tp2-0": 3, "tp2-1": 0},
        reserved={"tp2-0": 6_144, "tp2-1": 0},
        table_errors={"ShardMissing": 2},
    ),
}


def golden(path: Path, made: str) -> str:
    if REGENERATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(made)
    return path.read_text()


@pytest.mark.parametrize("name", REPORTS)
def test_the_writer_reproduces_the_golden_bytes_and_the_reader_finds_the_report(name: str) -> None:
    text = write_state(REPORTS[name])
    assert golden(GOLDEN / f"{name}.state.json", text) == text
    assert read_state(text) == REPORTS[name]
    assert read_state(text.encode()) == REPORTS[name]


@pytest.mark.parametrize("name", REPORTS)
def test_golden_states_satisfy_the_published_schema(name: str) -> None:
    document = json.loads((GOLDEN / f"{name}.state.json").read_text())
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(document)


def test_the_published_schema_is_the_one_the_reader_checks() -> None:
    text = json.dumps(json_schema(), indent=1, sort_keys=True) + "\n"
    assert golden(SCHEMA, text) == text


def test_fields_of_a_later_version_are_ignored_by_reader_and_schema() -> None:
    document = json.loads(write_state(REPORTS["planned"])) | {"later": [1.5]}
    assert read_state(json.dumps(document)) == REPORTS["planned"]
    jsonschema.Draft202012Validator(json_schema()).validate(document)


def changed(**fields: object) -> str:
    return json.dumps(json.loads(write_state(REPORTS["planned"])) | fields)


REFUSED = {
    "another format": (changed(format=2), "format"),
    "a fraction": (changed(generation=7.0), "generation"),
    "a negative count": (changed(inFlight={"tp2-0": -1}), "inFlight"),
    "a name that is no slot": (changed(reserved={"tp2": 1}), "reserved"),
    "an unknown mode": (changed(mode="plan2"), "mode"),
    "a fingerprint of another length": (changed(fingerprint="72"), "fingerprint"),
    "a missing field": (json.dumps({"format": 1, "identity": "a"}), "field mode"),
    "a list": ("[]", "JSON object"),
    "text that is not JSON": ("{", "answer with JSON"),
    "bytes that are no text": (b"\xff\xfe\x00{", "answer with JSON"),
    "nesting without end": ("[" * 100_000, "answer with JSON"),
    "too many bytes": (b" " * (STATE_BYTES_MAX + 1), "at most"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_an_answer_is_refused_for(text: str | bytes, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_state(text)


def test_a_report_that_the_format_cannot_hold_is_not_written() -> None:
    with pytest.raises(InvalidInput, match="identity"):
        write_state(RouterReport(identity=""))
