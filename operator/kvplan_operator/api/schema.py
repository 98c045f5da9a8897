"""From a pydantic type to a structural schema, the subset of OpenAPI v3 that the API server accepts.

Purpose: inline every reference, fold ``X or null`` into X (absent means default, null is no value), write
exclusive bounds as booleans, give integers their format, and keep only the keywords of the subset.
Inputs: a pydantic type. Outputs: plain JSON values with keys in one fixed order, so that the generated
files are stable. Must not do I/O. Source: "Extend the Kubernetes API with CustomResourceDefinitions",
specifying a structural schema.
"""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]

KEYWORDS = (
    "description", "type", "format", "default", "enum", "pattern", "minLength", "maxLength",
    "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
    "minProperties", "maxProperties", "properties", "required", "items", "additionalProperties",
    "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type",
    "x-kubernetes-validations",
)  # fmt: skip
"""Every keyword a generated schema may hold, in the order it is written."""


def structural_schema(model: type[BaseModel]) -> Schema:
    """The structural schema of a type; shared parts are repeated, since references are not allowed."""
    raw = model.model_json_schema(by_alias=True, mode="validation")
    return _convert(raw, raw.get("$defs", {}))


def schema_at(schema: Schema, path: Sequence[str | int]) -> Schema:
    """The schema of the value at ``path``; empty where the schema knows nothing."""
    for step in path:
        inner = schema.get("items") if isinstance(step, int) else _member(schema, step)
        schema = inner if isinstance(inner, dict) else {}
    return schema


def _member(schema: Schema, name: str) -> Any:
    return schema.get("properties", {}).get(name, schema.get("additionalProperties"))


def _convert(node: Schema, definitions: Schema) -> Schema:
    flat = _bounds(_single_type(_inline(node, definitions), definitions))
    if flat.get("type") == "integer":
        flat["format"] = "int64"
    if "const" in flat:
        flat["enum"] = [flat["const"]]
    _convert_children(flat, definitions)
    _shorten_default(flat)
    return {key: flat[key] for key in KEYWORDS if key in flat}


def _inline(node: Schema, definitions: Schema) -> Schema:
    """Replace a reference by its target; what stands beside the reference wins."""
    while "$ref" in node:
        target = definitions[node["$ref"].rsplit("/", 1)[-1]]
        node = {**target, **{key: value for key, value in node.items() if key != "$ref"}}
    return dict(node)


def _single_type(node: Schema, definitions: Schema) -> Schema:
    """Fold ``anyOf [X, null]`` into X."""
    if "anyOf" not in node:
        return node
    choices = [choice for choice in node.pop("anyOf") if choice.get("type") != "null"]
    if len(choices) != 1:
        raise TypeError(f"a field of {len(choices)} types has no structural schema: {choices}")
    return {**_inline(choices[0], definitions), **node}


def _bounds(node: Schema) -> Schema:
    """Write exclusive bounds as a bound and a boolean."""
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        value = node.get(exclusive)
        if value is not None and not isinstance(value, bool):
            node[bound], node[exclusive] = value, True
    return node


def _convert_children(node: Schema, definitions: Schema) -> None:
    if "properties" in node:
        node["properties"] = {name: _convert(child, definitions) for name, child in node["properties"].items()}
    if "items" in node:
        node["items"] = _convert(node["items"], definitions)
    values = node.pop("additionalProperties", None)
    if isinstance(values, dict):
        node["additionalProperties"] = _convert(values, definitions)


def _shorten_default(node: Schema) -> None:
    """Drop null and empty-list defaults; of an object's keep what its own fields do not default to."""
    default = node.get("default")
    if default is None or default == [] or (default == {} and "additionalProperties" in node):
        node.pop("default", None)
    elif isinstance(default, dict):
        node["default"] = _without_defaults(default, node)


def _without_defaults(value: Schema, schema: Schema) -> Schema:
    """``value`` without absent fields and without fields that ``schema`` fills in by itself."""
    kept = {}
    for name, inner in value.items():
        field = schema.get("properties", {}).get(name, {})
        if isinstance(inner, dict) and "properties" in field:
            inner = _without_defaults(inner, field)  # noqa: PLW2901 - the short form is what is compared
        if inner not in (None, [], {}) and inner != field.get("default"):
            kept[name] = inner
    return kept
