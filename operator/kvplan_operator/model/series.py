"""What an instant query answered: labelled numbers, or the reason why there are none.

Inputs: the JSON rows of a Prometheus vector. Outputs: frozen ``Series``. NaN and infinities are numbers here, because a
rate over nothing is NaN; who needs finite ones asks for those. Must not guess: a row of another shape is refused.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kvplan_solver.errors import Finding, InvalidInput

_REMEDY = "ask for an instant vector of plain numbers (native histograms are not read)"


@dataclass(frozen=True, slots=True)
class Series:
    """One element of a vector.

    Attributes:
        labels: its labels.
        value: its value.
        evaluated: time of the evaluation, seconds since the epoch by Prometheus' clock.
    """

    labels: Mapping[str, str]
    value: float
    evaluated: float


@dataclass(frozen=True)
class Answer:
    """What Prometheus said.

    Attributes:
        series: the vector; empty where nothing matched.
        warnings: its own words about what the vector lacks, for example a store that did not answer.
    """

    series: tuple[Series, ...] = ()
    warnings: tuple[str, ...] = ()

    def by(self, label: str) -> dict[str, float]:
        """Finite values by the value of one label."""
        return {series.labels.get(label, ""): series.value for series in self.finite}

    def of_class(self, name: str) -> tuple[Series, ...]:
        """The finite series of one class."""
        return self._by_class.get(name, ())

    @cached_property
    def finite(self) -> tuple[Series, ...]:
        """Without NaN and infinities, which stand for no data."""
        return tuple(series for series in self.series if math.isfinite(series.value))

    @cached_property
    def _by_class(self) -> dict[str, tuple[Series, ...]]:
        """Grouped once: a fleet has many classes, and each is looked up in every answer."""
        groups: dict[str, list[Series]] = {}
        for series in self.finite:
            groups.setdefault(series.labels.get("class", ""), []).append(series)
        return {name: tuple(group) for name, group in groups.items()}


@dataclass(frozen=True)
class Unanswered:
    """A query that got no usable answer.

    Attributes:
        reason: why, a sentence without the server's body.
    """

    reason: str


Reply = Answer | Unanswered


def series_from_rows(rows: object) -> tuple[Series, ...]:
    """The series of a vector's JSON rows.

    Raises:
        InvalidInput: a row that is no labelled number.
    """
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        raise InvalidInput("Prometheus", "data.result", Finding("is no list"), _REMEDY)
    return tuple(_series(row) for row in rows)


def _series(row: object) -> Series:
    match row:
        case {"metric": dict() as labels, "value": [int() | float() as evaluated, str() as text]}:
            if all(isinstance(value, str) for value in labels.values()):
                return Series(labels, _number(text), float(evaluated))
    raise InvalidInput("Prometheus", "data.result", row, _REMEDY)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput("Prometheus", "value", text, _REMEDY) from None
