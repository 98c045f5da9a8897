"""Every node of every schema keeps the rules of the API server, and bounds what it holds."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from kvplan_operator.api.crdgen import object_schema
from kvplan_operator.api.kinds import KINDS
from kvplan_operator.api.schema import KEYWORDS

Schema = dict[str, Any]
Node = tuple[str, Schema]

SAFE_INTEGER = 2**53 - 1
OWNED_BY_THE_SERVER = ("apiVersion", "kind", "metadata")


def walk(path: str, schema: Schema) -> Iterator[Node]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from walk(f"{path}.{name}", child)
    for keyword in ("items", "additionalProperties"):
        if keyword in schema:
            yield from walk(f"{path}.{keyword}", schema[keyword])


def nodes() -> list[Node]:
    found = []
    for kind in KINDS:
        for path, schema in walk(kind.name, object_schema(kind)):
            if path.removeprefix(f"{kind.name}.") not in OWNED_BY_THE_SERVER:
                found.append((path, schema))
    return found


NODES = nodes()


def of_type(name: str) -> list[Node]:
    return [(path, schema) for path, schema in NODES if schema["type"] == name]


def offenders(found: list[Node], *, lack: str) -> list[str]:
    return [path for path, schema in found if lack not in schema]


def test_the_walk_sees_every_type() -> None:
    assert len(NODES) > 300
    assert {schema["type"] for _, schema in NODES} == {"object", "array", "string", "integer", "boolean"}


def test_every_node_uses_only_keywords_of_a_structural_schema() -> None:
    assert [(path, key) for path, schema in NODES for key in schema if key not in KEYWORDS] == []


def test_every_field_is_described_in_a_sentence() -> None:
    fields = [(path, schema) for path, schema in NODES if not path.endswith((".items", ".additionalProperties"))]
    assert [path for path, schema in fields if not schema.get("description", "").endswith(".")] == []


def test_every_integer_has_a_format_and_bounds_that_json_carries_exactly() -> None:
    for path, schema in of_type("integer"):
        assert schema["format"] == "int64", path
        assert -SAFE_INTEGER <= schema["minimum"] <= schema["maximum"] <= SAFE_INTEGER, path
        assert isinstance(schema.get("exclusiveMinimum", True), bool), path


def test_every_string_is_bounded_or_one_of_a_few_words() -> None:
    assert [path for path, schema in of_type("string") if not {"maxLength", "enum"} & schema.keys()] == []


def test_every_pattern_compiles_and_is_anchored() -> None:
    patterns = [(path, schema["pattern"]) for path, schema in NODES if "pattern" in schema]
    for path, pattern in patterns:
        assert pattern.startswith("^"), path
        assert pattern.endswith("$"), path
        assert re.compile(pattern)


def test_every_list_is_bounded_and_says_how_it_merges() -> None:
    lists = of_type("array")
    assert offenders(lists, lack="maxItems") == []
    assert offenders(lists, lack="x-kubernetes-list-type") == []


def test_keys_of_keyed_lists_are_required_scalars() -> None:
    keyed = [(path, schema) for path, schema in NODES if schema.get("x-kubernetes-list-type") == "map"]
    assert keyed
    for path, schema in keyed:
        for key in schema["x-kubernetes-list-map-keys"]:
            assert key in schema["items"]["required"], path
            assert schema["items"]["properties"][key]["type"] in ("string", "integer"), path


def test_sets_hold_scalars() -> None:
    sets = [(path, schema) for path, schema in NODES if schema.get("x-kubernetes-list-type") == "set"]
    assert sets
    assert [path for path, schema in sets if schema["items"]["type"] not in ("string", "integer")] == []


def test_an_object_is_either_a_record_or_a_bounded_map() -> None:
    for path, schema in of_type("object"):
        assert ("properties" in schema) != ("additionalProperties" in schema), path
        assert "properties" in schema or "maxProperties" in schema, path


def test_required_fields_exist_and_have_no_default() -> None:
    for path, schema in of_type("object"):
        for name in schema.get("required", []):
            assert "default" not in schema["properties"][name], f"{path}.{name}"


def test_every_rule_says_what_to_do_and_guards_absent_fields() -> None:
    rules = [(path, rule) for path, schema in NODES for rule in schema.get("x-kubernetes-validations", [])]
    assert len(rules) >= 20
    for path, rule in rules:
        assert 10 < len(rule["message"]) < 200, path
        assert "\n" not in rule["rule"], path


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_printed_columns_point_at_fields_that_exist(kind: Any) -> None:
    schema = object_schema(kind)
    for column in kind.columns:
        steps = re.sub(r"\[\?.*?\]", ".items", column.path).lstrip(".").split(".")
        if steps[0] == "metadata":
            continue
        node = schema
        for step in steps:
            node = node["items"] if step == "items" else node["properties"][step]
        assert node["type"] == column.type, column.path
