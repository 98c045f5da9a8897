"""Where a number came from: the order in which sources are believed, and a value that carries its source."""

from dataclasses import dataclass
from enum import StrEnum


class Source(StrEnum):
    """Sources in the order of trust; the first that has a value wins."""

    MEASUREMENT = "Measurement"
    OVERRIDE = "Override"
    SNAPSHOT = "Snapshot"
    FORMULA = "Formula"

    @property
    def sentence(self) -> str:
        """What the source means, for people."""
        return _SENTENCES[self]


_SENTENCES = {
    Source.MEASUREMENT: "measured on this fleet while it served",
    Source.OVERRIDE: "set in the fleet's spec",
    Source.SNAPSHOT: "estimated from measured kernel times for this model, GPU and tensor parallelism",
    Source.FORMULA: "computed from the data sheet of the GPU and the size of the model",
}


@dataclass(frozen=True)
class Sourced:
    """A number, its source and what exactly was used (profile, preset, field)."""

    value: float
    source: Source
    detail: str = ""
