"""Every error the solver raises on purpose.

::

    SolverError
    ├── InvalidInput        the instance or an option makes no sense (names object, field, value, remedy)
    ├── EnumerationTooLarge a method that enumerates refuses the size of its search space
    └── BackendError        the LP/MILP library failed in a way that says nothing about the problem
"""


class SolverError(Exception):
    """Base of all deliberate solver errors."""


LONGEST_VALUE = 200
"""Characters of a value that a message shows."""


class Finding(str):
    """What is wrong with a field as a verb phrase (``selects no RequestClass``), where no value says it."""

    __slots__ = ()


class InvalidInput(SolverError, ValueError):
    """A value the solver refuses. The message names object, field, value and remedy."""

    def __init__(self, subject: str, field: str, value: object, remedy: str) -> None:
        self.subject, self.field, self.value, self.remedy = subject, field, value, remedy
        super().__init__(f"{subject}: {field} {_found(value)}: {remedy}")


def _found(value: object) -> str:
    if isinstance(value, Finding):
        return str(value)
    shown = "absent" if value is None else repr(value)
    return f"is {shown if len(shown) <= LONGEST_VALUE else shown[: LONGEST_VALUE - 1] + '…'}"


class EnumerationTooLarge(SolverError):
    """The number of candidates to enumerate exceeds the stated limit."""


class BackendError(SolverError):
    """The LP/MILP library ended without a usable answer."""
