"""Every error the pure operator layers raise on purpose.

::

    OperatorError
    ├── ManifestError       documents that are no valid objects (names document, object, field, value, remedy)
    ├── DigestError         a digest, or a plan's name, that does not belong to its content
    └── SettingsError       settings of the operator that cannot be used
"""

from collections.abc import Sequence
from dataclasses import dataclass


class OperatorError(Exception):
    """Base of all deliberate errors of the operator."""


@dataclass(frozen=True)
class Problem:
    """One thing wrong with one document.

    Attributes:
        subject: the object, for example ``document 2 (ServingFleet chat)``.
        field: path of the field in wire names, for example ``spec.configurations[0].tensorParallel``.
        value: what stands there, shortened for reading.
        remedy: what to write instead.
    """

    subject: str
    field: str
    value: str
    remedy: str

    def __str__(self) -> str:
        """One line: subject, field, value and remedy."""
        return f"{self.subject}: {self.field} is {self.value}: {self.remedy}"


class ManifestError(OperatorError, ValueError):
    """Documents the API refuses; one line per problem."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class DigestError(OperatorError, ValueError):
    """A digest that cannot be computed, or does not belong to what it is said to name."""


class SettingsError(OperatorError, ValueError):
    """Settings of the operator that cannot be used; one line per problem."""
