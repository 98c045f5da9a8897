"""What is wrong with a document, in words: object, field, value and remedy.

Purpose: turn a validation error into lines that a person can act on, with what the schema knows of the
field. Inputs: the document and pydantic's error. Outputs: ``Problem`` values, in the order of the fields.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kvplan_operator.api.schema import Schema, schema_at, structural_schema
from kvplan_operator.errors import Problem

Path = tuple[str | int, ...]


class _Absent:
    """Stands for a value that is not there."""


ABSENT: Final = _Absent()

LONGEST_VALUE = 80
"""Characters of a value that a message shows."""


def problems_of(
    subject: str, model: type[BaseModel], document: dict[str, Any], error: ValidationError
) -> list[Problem]:
    """One problem per error; a list that is wrong only because of an entry is not named beside it."""
    schema = _schema(model)
    details = error.errors(include_url=False)
    return [_problem(subject, schema, document, detail) for detail in details if not _contains(detail, details)]


@cache
def _schema(model: type[BaseModel]) -> Schema:
    return structural_schema(model)


def null_problems(subject: str, model: type[BaseModel], document: dict[str, Any]) -> list[Problem]:
    """Nulls below spec and status: absent means default, and null is no value."""
    schema = _schema(model)
    paths = [path for part in ("spec", "status") if part in document for path in _nulls(document[part], (part,))]
    return [Problem(subject, field_name(path), "null", _null_remedy(schema, path)) for path in paths]


def _null_remedy(schema: Schema, path: Path) -> str:
    """What to write where something is required; everything else may go."""
    field, owner = schema_at(schema, path), schema_at(schema, path[:-1])
    if path[-1] in owner.get("required", ()):
        return f"it is required: use {expected(field)}{_meaning(field)}"
    if isinstance(path[-1], int):
        return "remove the entry, or give it a value"
    return "remove the field: a field that is left out has its default"


def field_name(path: Sequence[str | int]) -> str:
    """A path as people write it: ``spec.configurations[0].name``."""
    parts = (f"[{step}]" if isinstance(step, int) else f".{plain(step)}" for step in path)
    return "".join(parts).removeprefix(".") or "the object"


def shown(value: object) -> str:
    """A value as one short line of JSON."""
    if isinstance(value, _Absent):
        return "absent"
    return _shortened(json.dumps(_with_text_keys(value), ensure_ascii=False, default=str))


def plain(name: object) -> str:
    """A name as it is, if it is short printable text; otherwise as one short line of JSON."""
    harmless = isinstance(name, str) and name.isprintable() and len(name) <= LONGEST_VALUE
    return str(name) if harmless else shown(name)


def _shortened(text: str) -> str:
    safe = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return safe if len(safe) <= LONGEST_VALUE else f"{safe[: LONGEST_VALUE - 1]}…"


def _with_text_keys(value: object) -> object:
    """YAML allows any key, JSON only text."""
    if isinstance(value, dict):
        return {str(name): _with_text_keys(inner) for name, inner in value.items()}
    return [_with_text_keys(inner) for inner in value] if isinstance(value, list) else value


def _nulls(value: object, path: Path) -> Iterator[Path]:
    if value is None:
        yield path
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _nulls(inner, (*path, str(name)))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _nulls(inner, (*path, position))


def _problem(subject: str, schema: Schema, document: dict[str, Any], detail: ErrorDetails) -> Problem:
    path = _path(detail)
    return Problem(subject, field_name(path), shown(_value(document, path)), _remedy(schema, path, detail))


def _contains(detail: ErrorDetails, others: Sequence[ErrorDetails]) -> bool:
    path = detail["loc"]
    return any(len(other["loc"]) > len(path) and other["loc"][: len(path)] == path for other in others)


def _path(detail: ErrorDetails) -> Path:
    blamed = detail.get("ctx", {}).get("field", "") if detail["type"] == "rule" else ""
    return (*detail["loc"], *blamed.split(".")) if blamed else detail["loc"]


def _value(document: Any, path: Path) -> object:
    for step in path:
        try:
            document = document[step]
        except (KeyError, IndexError, TypeError):
            return ABSENT
    return document


def _remedy(schema: Schema, path: Path, detail: ErrorDetails) -> str:
    field = schema_at(schema, path)
    match detail["type"]:
        case "rule":
            return str(detail["ctx"]["remedy"])
        case "extra_forbidden":
            return _remove(path, schema_at(schema, path[:-1]))
        case "missing":
            return f"add {expected(field)}{_meaning(field)}"
        case _:
            return f"use {expected(field)}{_meaning(field)}"


def _remove(path: Path, owner: Schema) -> str:
    known = list(owner.get("properties", {}))
    near = get_close_matches(str(path[-1]), known, n=1)
    return f"rename it to {near[0]}" if near else f"remove it; known fields here are {', '.join(known)}"


def _meaning(field: Schema) -> str:
    description = field.get("description", "")
    return f" ({description.rstrip('.')})" if description else ""


def expected(field: Schema) -> str:
    """What a field takes, in words."""
    if "enum" in field:
        return f"one of {', '.join(str(value) for value in field['enum'])}"
    describe = _EXPECTED.get(field.get("type", ""))
    return describe(field) if describe else "a valid value"


def _expected_text(field: Schema) -> str:
    pattern = f" that matches {field['pattern']}" if "pattern" in field else ""
    return f"a string of {field.get('minLength', 0)} to {field.get('maxLength', 253)} characters{pattern}"


def _expected_mapping(field: Schema) -> str:
    required = field.get("required")
    return f"a mapping with {', '.join(required)}" if required else "a mapping"


_EXPECTED: dict[str, Callable[[Schema], str]] = {
    "integer": lambda field: f"an integer from {field['minimum']} to {field['maximum']}",
    "boolean": lambda _: "true or false",
    "string": _expected_text,
    "array": lambda field: f"a list of {field.get('minItems', 0)} to {field['maxItems']} entries",
    "object": _expected_mapping,
}
