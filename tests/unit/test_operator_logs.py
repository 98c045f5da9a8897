"""Log lines: JSON, with the fleet, and one per decision."""

import io
import json
import logging
from typing import Any

import pytest

from kvplan_operator.logs import Decision, FleetLog, JsonFormatter


class Logged:
    """A fleet's log with what it wrote."""

    def __init__(self) -> None:
        self._stream = io.StringIO()
        logger = logging.Logger("test")
        handler = logging.StreamHandler(self._stream)
        handler.setFormatter(JsonFormatter())
        logger.addHandler(handler)
        self.log = FleetLog("default/chat", logger)
        self.log.generation = 3

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._stream.getvalue().splitlines()]


def gate(outcome: str, plan: str = "chat-1", **numbers: float) -> Decision:
    return Decision("gate", outcome, f"the gate says {outcome}", plan, numbers)


def test_a_decision_is_one_line_with_its_numbers_fleet_plan_and_generation() -> None:
    logged = Logged()
    logged.log.decided(gate("Dwelling", savingMilli=30))
    (line,) = logged.lines
    assert {name: line[name] for name in ("level", "fleet", "generation", "plan", "decision", "outcome")} == {
        "level": "INFO", "fleet": "default/chat", "generation": 3, "plan": "chat-1", "decision": "gate",
        "outcome": "Dwelling",
    }  # fmt: skip
    assert line["savingMilli"] == 30
    assert line["message"] == "the gate says Dwelling"


def test_a_decision_that_stands_is_not_said_again_even_if_its_numbers_move() -> None:
    logged = Logged()
    for saving in (30, 31, 32):
        logged.log.decided(gate("Dwelling", savingMilli=saving))
    assert len(logged.lines) == 1


@pytest.mark.parametrize("other", [gate("Go"), gate("Dwelling", "chat-2")])
def test_another_outcome_or_plan_is_another_decision(other: Decision) -> None:
    logged = Logged()
    for decision in (gate("Dwelling"), other, gate("Dwelling")):
        logged.log.decided(decision)
    assert len(logged.lines) == 3


def test_decisions_about_different_things_do_not_hide_each_other() -> None:
    logged = Logged()
    for about in ("gate", "table", "gate", "table"):
        logged.log.decided(Decision(about, "Go", "go"))
    assert [line["decision"] for line in logged.lines] == ["gate", "table"]


def test_text_of_objects_is_never_a_template() -> None:
    logged = Logged()
    logged.log.decided(Decision("gate", "Go", "a node called %s {x} %(y)d"))
    assert logged.lines[0]["message"] == "a node called %s {x} %(y)d"


def test_a_failure_has_its_traceback_in_one_line() -> None:
    logged = Logged()
    try:
        int("first line\nsecond line")
    except ValueError as error:
        logged.log.failed("the look failed", error)
    (line,) = logged.lines
    assert (line["level"], line["error"], line["fleet"]) == ("ERROR", "ValueError", "default/chat")
    assert "second line" in line["traceback"]
