"""A number of the plan's input and where it came from, in one flat table that people can read."""

from dataclasses import dataclass, replace
from enum import StrEnum

from kvplan_operator.model.priors.resolve import ResolvedConfiguration
from kvplan_operator.model.priors.source import Source, Sourced


class Origin(StrEnum):
    """Where a number of a class came from; configurations have the finer ``Source``."""

    SPEC = "Spec"
    MEASUREMENT = "Measurement"
    DERIVED = "Derived"
    DEFAULT = "Default"


@dataclass(frozen=True)
class NumberSource:
    """One input number.

    Attributes:
        subject: the object, for example ``configuration tp2`` or ``class chat``.
        quantity: what the number is, with its unit.
        value: the number, in that unit.
        source: word of ``Source`` or ``Origin``.
        detail: what exactly was used.
    """

    subject: str
    quantity: str
    value: float
    source: Source | Origin
    detail: str = ""


def configuration_sources(resolved: ResolvedConfiguration) -> tuple[NumberSource, ...]:
    """The four numbers of one configuration; speeds are those of one sequence alone."""
    subject = f"configuration {resolved.configuration.name}"
    rows: tuple[tuple[str, Sourced], ...] = (
        ("KV capacity, tokens", resolved.kv_capacity_tokens),
        ("maximum sequences", resolved.max_sequences),
        ("prefill alone (batch 1), µs/token", _micro(resolved.prefill)),
        ("decode alone (batch 1), µs/token", _micro(resolved.decode)),
    )
    return tuple(NumberSource(subject, name, s.value, s.source, s.detail) for name, s in rows)


def _micro(seconds: Sourced) -> Sourced:
    return replace(seconds, value=seconds.value * 1e6)
