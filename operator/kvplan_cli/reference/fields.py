"""The fields below a schema, a row each: path, type, default, limits, meaning.

Inputs: a structural schema (``kvplan_operator.api.schema``). Outputs: rows and rules, in the schema's order. Pure.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from kvplan_operator.api.schema import Schema

REQUIRED = "required"


@dataclass(frozen=True)
class Field:
    """One field.

    Attributes:
        path: from the object's top, with ``[]`` for the entries of a list.
        type: in words.
        default: as JSON, ``required``, or empty where absence has a meaning of its own.
        limits: what is accepted beyond the type.
        pattern: that a text must match; empty for none.
        meaning: a sentence.
    """

    path: str
    type: str
    default: str
    limits: str
    pattern: str
    meaning: str


@dataclass(frozen=True)
class RuleText:
    """One rule over several fields.

    Attributes:
        path: of the field that is blamed.
        message: what to do.
        cel: what the API server evaluates, with ``self`` for the object that holds the rule.
    """

    path: str
    message: str
    cel: str


def fields(schema: Schema, path: str) -> Iterator[Field]:
    """Every field below an object, outer ones first."""
    required = schema.get("required", ())
    for name, inner in schema.get("properties", {}).items():
        here = f"{path}.{name}"
        yield _field(inner, here, name in required)
        yield from fields(inner, here)
        yield from fields(inner.get("items", {}), f"{here}[]")


def rules(schema: Schema, path: str) -> Iterator[RuleText]:
    """Every rule at an object and below."""
    for rule in schema.get("x-kubernetes-validations", ()):
        yield RuleText(path + rule.get("fieldPath", ""), rule["message"], rule["rule"])
    for name, inner in schema.get("properties", {}).items():
        yield from rules(inner, f"{path}.{name}")
        yield from rules(inner.get("items", {}), f"{path}.{name}[]")


def _field(schema: Schema, path: str, required: bool) -> Field:
    default = json.dumps(schema["default"], ensure_ascii=False) if "default" in schema else ""
    values = _values(schema)
    return Field(
        path=path,
        type=_type(schema),
        default=REQUIRED if required else default,
        limits=", ".join(filter(None, (_entries(schema), _range(values), _length(values), _words(values)))),
        pattern=values.get("pattern", ""),
        meaning=schema.get("description", ""),
    )


def _values(schema: Schema) -> Schema:
    """The schema of a field's single values: of a list's or mapping's entries, where these are no objects."""
    entry: Schema = schema.get("items") or schema.get("additionalProperties") or schema
    return {} if "properties" in entry else entry


def _type(schema: Schema) -> str:
    if "items" in schema:
        return f"list of {_plural(schema['items'])}"
    if "additionalProperties" in schema:
        return f"mapping to {_plural(schema['additionalProperties'])}"
    return str(schema["type"])


def _plural(schema: Schema) -> str:
    return f"{schema['type']}s"


def _entries(schema: Schema) -> str:
    """How many entries, and which of them must differ."""
    parts = [_between(schema, "minItems", "maxItems", " entries"), _between(schema, "", "maxProperties", " entries")]
    match schema.get("x-kubernetes-list-type"):
        case "map":
            parts.append(f"each {' and '.join(schema['x-kubernetes-list-map-keys'])} once")
        case "set":
            parts.append("each once")
    return ", ".join(filter(None, parts))


def _range(schema: Schema) -> str:
    if schema.get("exclusiveMinimum"):
        return f"above {schema['minimum']:,}"
    if "minimum" in schema and "maximum" not in schema:
        return f"{schema['minimum']:,} or more"
    return _between(schema, "minimum", "maximum", "")


def _length(schema: Schema) -> str:
    return _between(schema, "minLength", "maxLength", " characters")


def _words(schema: Schema) -> str:
    return ", ".join(f"`{word}`" for word in schema.get("enum", ()))


def _between(schema: Schema, least: str, most: str, unit: str) -> str:
    if most not in schema:
        return ""
    low, high = schema.get(least, 0), schema[most]
    return f"{high:,}{unit}" if low == high else f"{low:,} to {high:,}{unit}"
