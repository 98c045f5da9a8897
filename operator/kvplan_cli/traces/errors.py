"""The errors of trace input: one for a source that cannot be used (exit code 2), one for a single value."""

from pathlib import Path


class TraceError(Exception):
    """A trace, mapping or distribution that cannot be used."""

    def __init__(self, source: Path | str, problem: str, remedy: str) -> None:
        self.source, self.problem, self.remedy = str(source), problem, remedy
        super().__init__(f"{source}: {problem}: {remedy}")


class BadValueError(Exception):
    """A raw value that is no number or id; its text is the kind of problem. It never leaves the readers."""
