"""What the operator says: one JSON object per line, and one line per decision with its numbers.

Inputs: log records, and ``Decision`` values. Output: lines on stderr with time, level, message, and fleet, plan and
generation where they are known. A decision is said when it changes and not again while it stands, so that a fleet at
rest is silent. Must not: log a credential, or format text of an object as a template.
"""

import json
import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TextIO

FIELDS = "kvplan"
"""Attribute of a log record that holds its structured fields."""
LOGGER = "kvplan"
_NUMBERS_SHOWN = 16


@dataclass(frozen=True)
class Decision:
    """One thing the operator decided.

    Attributes:
        about: what kind of decision, one per fleet at a time: ``plan``, ``gate``, ``rollout``, ``table``.
        outcome: what it is, a word or a reason.
        message: for people.
        plan: name of the RoutingPlan it is about; empty where there is none.
        numbers: what it was decided from.
    """

    about: str
    outcome: str
    message: str
    plan: str = ""
    numbers: Mapping[str, int | float | str] = field(default_factory=dict)

    @property
    def identity(self) -> tuple[str, str]:
        """What must change for the decision to count as another one; numbers move all the time."""
        return self.outcome, self.plan


class FleetLog:
    """The log of one fleet."""

    def __init__(self, fleet: str, logger: logging.Logger | None = None) -> None:
        self.fleet, self.generation = fleet, 0
        self._logger = logger or logging.getLogger(LOGGER)
        self._said: dict[str, tuple[str, str]] = {}

    def decided(self, decision: Decision) -> None:
        """Say a decision unless it is the one that stands."""
        if self._said.get(decision.about) == decision.identity:
            return
        self._said[decision.about] = decision.identity
        numbers = dict(list(decision.numbers.items())[:_NUMBERS_SHOWN])
        fields = {"decision": decision.about, "outcome": decision.outcome, "plan": decision.plan, **numbers}
        self._logger.info("%s", decision.message, extra=self._extra(fields))

    def failed(self, what: str, error: BaseException) -> None:
        """Say that something went wrong, with the traceback."""
        extra = self._extra({"error": type(error).__name__})
        self._logger.error("%s: %s", what, error, exc_info=error, extra=extra)

    def _extra(self, fields: Mapping[str, object]) -> dict[str, object]:
        where = {"fleet": self.fleet, "generation": self.generation}
        return {FIELDS: where | {name: value for name, value in fields.items() if value != ""}}


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Time in UTC, level, message, the structured fields, and the traceback if there is one."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= getattr(record, FIELDS, {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def configure_logs(level: str, stream: TextIO | None = None) -> None:
    """All logs of the process as JSON lines; kopf's own only from WARNING, for it tells of every event."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for own in (LOGGER, __package__):
        logging.getLogger(own).setLevel(level)
    for chatty in ("kopf", "aiohttp.access"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
