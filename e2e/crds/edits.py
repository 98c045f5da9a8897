"""Change complete documents at random, so that two readers of the same schema can be compared.

Inputs: a document, its schema, and numbers that choose a place and a value there. Outputs: documents, half of them
right and half wrong: values at and beyond each bound, other types, missing fields, repeated and reversed entries,
values of neighbours. Never null and never an unknown field: those are refused by pydantic alone.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kvplan_operator.api.schema import Schema, schema_at

Document = dict[str, Any]
Place = tuple[str | int, ...]
Edit = tuple[int, int]

REMOVED = object()
_NUMBERS = [0, 1, -1, 8, 64, 100, 1000]
_TEXTS = [
    "",
    "a",
    "A",
    "a-b",
    "a.b",
    "a..b",
    "-a",
    "a b",
    "a_b",
    "é",
    "a\n",
    "a\u00a0",
    "a/b",
    "x" * 64,
    "1.0",
    "24:00",
]


def edited(document: Document, part: str, schema: Schema, edits: Sequence[Edit]) -> Document:
    """A copy with some places below one part of it changed.

    Args:
        document: a complete object.
        part: `spec` or `status`.
        schema: of the whole object.
        edits: pairs of numbers: which place, counted around, and which of the values for it.
    """
    changed = copy.deepcopy(document)
    for where, which in edits:
        places = list(_places(changed.get(part), (part,)))
        place = places[where % len(places)]
        choices = values(schema_at(schema, place), _at(changed, place))
        _put(changed, place, choices[which % len(choices)])
    return changed


def values(field: Schema, value: Any) -> list[object]:
    """What to put in the place of a value: right and wrong, and `REMOVED`."""
    return [REMOVED, *_VALUES.get(field.get("type", ""), _no_values)(field, value)]


def _no_values(_field: Schema, _value: Any) -> list[object]:
    """Inside of a value that has no business there."""
    return []


def _numbers(field: Schema, value: Any) -> list[object]:
    low, high = field["minimum"], field["maximum"]
    near = [value + 1, value - 1, value * 2, value + 0.5] if isinstance(value, int) else []
    return [low - 1, low, low + 1, high, high + 1, *near, str(value), True, *_NUMBERS]


def _texts(field: Schema, value: Any) -> list[object]:
    longest = field.get("maxLength", 8)
    words = field.get("enum", [])
    return [*words, *_TEXTS, "a" * longest, "a" * (longest + 1), f"{value}x", str(value).upper(), 7, False, [value]]


def _lists(field: Schema, value: Any) -> list[object]:
    entries = value if isinstance(value, list) else []
    return [[], entries[::-1], entries[:1], entries * 2, entries[:1] * (field["maxItems"] + 1), {}, "x", [7], [{}]]


_VALUES: dict[str, Callable[[Schema, Any], list[object]]] = {
    "integer": _numbers,
    "string": _texts,
    "boolean": lambda _, value: [not value, "true", 1],
    "array": _lists,
    "object": lambda *_: [{}, [], "x", 1],
}


def _places(value: Any, place: Place) -> Iterator[Place]:
    yield place
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in entries:
        yield from _places(inner, (*place, step))


def _at(document: Any, place: Place) -> Any:
    for step in place:
        document = document.get(step) if isinstance(document, dict) else document[step]
    return document


def _put(document: Document, place: Place, value: object) -> None:
    owner = _at(document, place[:-1])
    if value is REMOVED:
        owner.pop(place[-1], None) if isinstance(owner, dict) else owner.pop(place[-1])
    else:
        owner[place[-1]] = copy.deepcopy(value)
