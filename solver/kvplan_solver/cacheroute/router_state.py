"""What one router process says of itself on ``GET /state``, format 1. Standard library only.

In: a :class:`RouterReport` or the JSON text of one. Out: the text, or the checked report. Both sides use this
file: the router writes, the operator and ``kvplan doctor`` read. Must not carry keys, tenants or prompt text.
Contract: docs/contracts/router-state.md; 09-contracts "Router state".
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kvplan_solver.cacheroute.table.shape import Dictionary, OneOf, Record, Text, Whole
from kvplan_solver.cacheroute.table.values import SLOT_LONGEST, SLOT_PATTERN
from kvplan_solver.errors import InvalidInput

FORMAT = 1
STATE_BYTES_MAX = 2_097_152
"""A longer answer is not read: 2,048 slots with the longest names stay below it."""

_REMEDY = "see docs/contracts/router-state.schema.json"
_BY_SLOT = Dictionary(Text(SLOT_LONGEST, SLOT_PATTERN), Whole(), 2_048)

SHAPE = Record(
    {
        "format": Whole(FORMAT, FORMAT),
        "identity": Text(253, ".+"),
        "mode": OneOf(("none", "observe", "plan")),
        "epoch": Whole(),
        "generation": Whole(),
        "since": Whole(),
        "fingerprint": Text(16, "([0-9a-f]{16})?"),
        "inFlight": _BY_SLOT,
        "reserved": _BY_SLOT,
        "tableErrors": Dictionary(Text(64, "[A-Za-z]+"), Whole(), 32),
    },
    {},
    "What one router process says of itself, format 1.",
)


class RouterMode(StrEnum):
    """What the router does with a request."""

    NONE = "none"
    """It has no index yet."""
    OBSERVE = "observe"
    PLAN = "plan"


@dataclass(frozen=True)
class RouterReport:
    """One answer.

    Attributes:
        identity: of the process, as the index's ``routers`` names it.
        mode: of the index in force; ``none`` before the first.
        epoch: of the index in force; 0 before the first.
        generation: of the index in force, the least of its workers; 0 before the first.
        since: when it came into force, seconds since the epoch; 0 before the first.
        fingerprint: of the hash secret; empty while the process knows none.
        in_flight: requests sent to each slot and not finished; slots with none may be left out.
        reserved: KV tokens held on each slot; slots with none may be left out.
        table_errors: indexes refused since the process started, by reason.
    """

    identity: str
    mode: RouterMode = RouterMode.NONE
    epoch: int = 0
    generation: int = 0
    since: int = 0
    fingerprint: str = ""
    in_flight: Mapping[str, int] = field(default_factory=dict)
    reserved: Mapping[str, int] = field(default_factory=dict)
    table_errors: Mapping[str, int] = field(default_factory=dict)


def json_schema() -> dict[str, Any]:
    """The published schema (docs/contracts/router-state.schema.json): unknown fields are ignored by readers."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"https://kvplan.dev/contracts/router-state-v{FORMAT}.schema.json",
        **SHAPE.schema(),
        "additionalProperties": True,
    }


def write_state(report: RouterReport) -> str:
    """The answer's body; equal reports give equal bytes.

    Raises:
        InvalidInput: a value that the format cannot hold.
    """
    document = {
        "format": FORMAT,
        "identity": report.identity,
        "mode": report.mode.value,
        "epoch": report.epoch,
        "generation": report.generation,
        "since": report.since,
        "fingerprint": report.fingerprint,
        "inFlight": dict(report.in_flight),
        "reserved": dict(report.reserved),
        "tableErrors": dict(report.table_errors),
    }
    _check(document)
    return json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n"


def read_state(text: str | bytes) -> RouterReport:
    """Read and check an answer; fields of later versions are ignored.

    Raises:
        InvalidInput: too long, not JSON, another format, or a field that is absent or wrong.
    """
    if len(text) > STATE_BYTES_MAX:
        raise InvalidInput("router state", "bytes", len(text), f"at most {STATE_BYTES_MAX} are read")
    document = _parsed(text)
    _check(document)
    return RouterReport(
        identity=document["identity"],
        mode=RouterMode(document["mode"]),
        epoch=document["epoch"],
        generation=document["generation"],
        since=document["since"],
        fingerprint=document["fingerprint"],
        in_flight=document["inFlight"],
        reserved=document["reserved"],
        table_errors=document["tableErrors"],
    )


def _parsed(text: str | bytes) -> dict[str, Any]:
    """The known fields."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise InvalidInput("router state", "body", str(fault), "answer with JSON") from None
    if not isinstance(document, dict):
        raise InvalidInput("router state", "body", type(document).__name__, "answer with a JSON object")
    return {name: value for name, value in document.items() if name in SHAPE.required}


def _check(document: Mapping[str, Any]) -> None:
    try:
        SHAPE.check(document, "state")
    except ValueError as fault:
        raise InvalidInput("router state", "document", str(fault), _REMEDY) from None
