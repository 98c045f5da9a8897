"""Shapes of JSON values: one definition gives both the reader's check and the published JSON schema.

In: a parsed JSON value. Out: nothing, or ValueError with the path of the first fault. Integers only: the
documents described here hold no fractions, no nulls, and no unbounded list, map or text.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


class Shape(Protocol):
    """What a JSON value must look like."""

    def check(self, value: object, path: str) -> None:
        """Raise ValueError, naming ``path``, unless the value has this shape."""

    def schema(self) -> dict[str, Any]:
        """The same rule as JSON schema (draft 2020-12)."""


@dataclass(frozen=True)
class Whole:
    """An integer between two bounds, both allowed."""

    low: int = 0
    high: int = 2**53 - 1  # what every JSON reader keeps exactly

    def check(self, value: object, path: str) -> None:
        """See :class:`Shape`."""
        good = type(value) is int and self.low <= value <= self.high
        _require(good, path, value, f"an integer from {self.low} to {self.high}")

    def schema(self) -> dict[str, Any]:
        """See :class:`Shape`."""
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True)
class Text:
    """A string of bounded length, optionally of one pattern."""

    longest: int
    pattern: str = ""

    def check(self, value: object, path: str) -> None:
        """See :class:`Shape`."""
        good = isinstance(value, str) and len(value) <= self.longest
        _require(good, path, value, f"text of at most {self.longest} characters")
        matches = not self.pattern or re.fullmatch(self.pattern, str(value)) is not None
        _require(matches, path, value, f"text like {self.pattern}")

    def schema(self) -> dict[str, Any]:
        """See :class:`Shape`."""
        pattern = {"pattern": f"^(?:{self.pattern})$"} if self.pattern else {}
        return {"type": "string", "maxLength": self.longest, **pattern}


@dataclass(frozen=True)
class OneOf:
    """One of a few words."""

    words: tuple[str, ...]

    def check(self, value: object, path: str) -> None:
        """See :class:`Shape`."""
        _require(isinstance(value, str) and value in self.words, path, value, f"one of {', '.join(self.words)}")

    def schema(self) -> dict[str, Any]:
        """See :class:`Shape`."""
        return {"enum": list(self.words)}


@dataclass(frozen=True)
class Listing:
    """A bounded list of one shape."""

    item: Shape
    longest: int
    shortest: int = 0

    def check(self, value: object, path: str) -> None:
        """See :class:`Shape`."""
        good = isinstance(value, list) and self.shortest <= len(value) <= self.longest
        _require(good, path, value, f"a list of {self.shortest} to {self.longest} items")
        for index, item in enumerate(value if isinstance(value, list) else ()):
            self.item.check(item, f"{path}[{index}]")

    def schema(self) -> dict[str, Any]:
        """See :class:`Shape`."""
        bounds = {"minItems": self.shortest, "maxItems": self.longest}
        return {"type": "array", "items": self.item.schema(), **bounds}


@dataclass(frozen=True)
class Dictionary:
    """A bounded map from names of one shape to values of one shape."""

    name: Text
    item: Shape
    longest: int

    def check(self, value: object, path: str) -> None:
        """See :class:`Shape`."""
        good = isinstance(value, dict) and len(value) <= self.longest
        _require(good, path, value, f"a map of at most {self.longest} entries")
        for key, item in (value if isinstance(value, dict) else {}).items():
            self.name.check(key, f"{path} key")
            self.item.check(item, f"{path}.{key}")

    def schema(self) -> dict[str, Any]:
        """See :class:`Shape`."""
        return {
            "type": "object",
            "propertyNames": self.name.schema(),
            "additionalProperties": self.item.schema(),
            "maxProperties": self.longest,
        }


@dataclass(frozen=True)
class Record:
    """An object with fixed fields and no others."""

    required: Mapping[str, Shape]
    optional: Mapping[str, Shape] = field(default_factory=dict)
    note: str = ""

    def check(self, value: object, path: str) -> None:
        """See :class:`Shape`."""
        _require(isinstance(value, dict), path, value, "an object")
        fields = value if isinstance(value, dict) else {}
        shapes = {**self.required, **self.optional}
        for name in self.required:
            _require(name in fields, path, sorted(fields), f"an object with the field {name}")
        for name, item in fields.items():
            _require(name in shapes, path, name, f"one of the fields {', '.join(shapes)}")
            shapes[name].check(item, f"{path}.{name}")

    def schema(self) -> dict[str, Any]:
        """See :class:`Shape`."""
        return {
            "type": "object",
            **({"description": self.note} if self.note else {}),
            "properties": {name: shape.schema() for name, shape in {**self.required, **self.optional}.items()},
            "required": list(self.required),
            "additionalProperties": False,
        }


def _require(condition: bool, path: str, value: object, wanted: str) -> None:
    if not condition:
        raise ValueError(f"{path} is {value!r:.80}: expected {wanted}")
