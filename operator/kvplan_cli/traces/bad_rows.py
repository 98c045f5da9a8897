"""Rows that cannot be used: all of them counted, the first few named by line and reason.

Inputs: lines and reasons from the readers. Output: one frozen ``BadRows`` for the report.
"""

from collections import Counter
from dataclasses import dataclass, field

EXAMPLES = 5
"""Bad rows named in full."""


@dataclass(frozen=True)
class BadRows:
    """What was left out of a trace and why.

    Attributes:
        count: rows left out.
        examples: (line, reason) of the first few.
        by_kind: (kind of problem, rows), most frequent first, then by name.
    """

    count: int = 0
    examples: tuple[tuple[int, str], ...] = ()
    by_kind: tuple[tuple[str, int], ...] = ()

    def summary(self, unit: str = "line") -> str:
        """One sentence: the count, the kinds and the first few rows."""
        if not self.count:
            return "no bad rows"
        kinds = ", ".join(f"{rows} × {kind}" for kind, rows in self.by_kind)
        named = "; ".join(f"{unit} {number}: {reason}" for number, reason in self.examples)
        rows = "1 bad row" if self.count == 1 else f"{self.count} bad rows"
        return f"{rows} ({kinds}), first: {named}"


@dataclass
class BadRowCounter:
    """Collects bad rows while a file is read, in constant memory."""

    examples: list[tuple[int, str]] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, line: int, kind: str, detail: str = "") -> None:
        """Count one row; ``detail`` shows the value and is kept only for the first few."""
        self.kinds[kind] += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append((line, f"{kind} ({detail})" if detail else kind))

    def frozen(self) -> BadRows:
        """The count so far."""
        ranked = sorted(self.kinds.items(), key=lambda item: (-item[1], item[0]))
        return BadRows(self.kinds.total(), tuple(self.examples), tuple(ranked))
