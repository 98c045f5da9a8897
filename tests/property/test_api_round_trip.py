"""Types and schemas accept the same documents, and nothing is lost between a document and its object."""

import copy
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kvplan_operator.api.crdgen import object_schema
from kvplan_operator.api.kinds import KINDS
from kvplan_operator.api.manifests import TYPED, load_manifests, parse_object
from kvplan_operator.api.schema import schema_at
from kvplan_operator.errors import ManifestError

Document = dict[str, Any]
Path_ = tuple[str | int, ...]

ROOT = Path(__file__).parents[2]
SCHEMAS = {kind.name: object_schema(kind) for kind in KINDS}
# Draft 4 is the last one with boolean exclusive bounds, as the API server has them.
VALIDATORS = {name: jsonschema.Draft4Validator(schema) for name, schema in SCHEMAS.items()}


def read(path: Path) -> list[Document]:
    return [document for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) if document]


EXAMPLES = [read(path)[0] for path in sorted((ROOT / "tests" / "golden" / "api").glob("*.yaml"))]
SAMPLES = [d for path in sorted((ROOT / "manifests" / "samples").rglob("*.yaml")) for d in read(path)]
OURS = [document for document in SAMPLES if document["kind"] in TYPED]


def name_of(document: Document) -> str:
    return f"{document['kind']} {document['metadata']['name']}"


def leaves(value: object, path: Path_ = ()) -> Iterator[Path_]:
    """Paths of everything below spec and status, containers included."""
    yield path
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from leaves(inner, (*path, position))


def inside(document: Document) -> list[Path_]:
    return [path for part in ("spec", "status") if part in document for path in leaves(document[part], (part,))]


def at(document: Any, path: Path_) -> Any:
    for step in path:
        document = document[step]
    return document


def replaced(document: Document, path: Path_, value: object) -> Document:
    changed = copy.deepcopy(document)
    at(changed, path[:-1])[path[-1]] = value
    return changed


def accepted(document: Document) -> bool:
    try:
        parse_object(document)
    except ManifestError:
        return False
    return True


def with_defaults(schema: Document, value: Any) -> Any:
    """What the API server stores: defaults filled in from the outside to the inside."""
    if isinstance(value, list):
        return [with_defaults(schema["items"], item) for item in value]
    if not isinstance(value, dict) or "properties" not in schema:
        return value
    known = schema["properties"]
    filled = {name: copy.deepcopy(field["default"]) for name, field in known.items() if "default" in field}
    return {name: with_defaults(known[name], inner) for name, inner in {**filled, **value}.items()}


def without_empty_lists(value: Any) -> Any:
    """Leaves out empty lists and maps of strings, which the API server does not fill in."""
    if isinstance(value, list):
        return [without_empty_lists(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {name: without_empty_lists(inner) for name, inner in value.items()}
    return {name: inner for name, inner in kept.items() if inner != [] and name not in empty_maps(value)}


def empty_maps(value: Document) -> set[str]:
    return {name for name in ("matchLabels", "labels", "annotations") if value.get(name) == {}}


@pytest.mark.parametrize("document", [*EXAMPLES, *OURS], ids=name_of)
def test_an_object_written_and_read_again_is_the_same(document: Document) -> None:
    first = parse_object(document)
    again = parse_object(first.to_wire())
    assert again == first
    assert again.to_wire() == first.to_wire()


@pytest.mark.parametrize("document", EXAMPLES, ids=name_of)
def test_a_complete_document_comes_back_unchanged(document: Document) -> None:
    wire = parse_object(document).to_wire()
    assert wire["spec"] == document["spec"]
    assert wire["status"] == document["status"]


ALTERNATIVES = {
    ("ServingFleet", "spec.uncertainty.radius.relativeMilli"),
    ("ServingFleet", "spec.uncertainty.radius.auto"),
    ("ServingFleet", "spec.prometheus.url"),
    ("RequestClass", "spec.outputLengths.prometheus"),
    ("RequestClass", "spec.outputLengths.configMapRef"),
}
"""Fields that a complete document lacks, since another excludes them."""


@pytest.mark.parametrize("document", EXAMPLES, ids=name_of)
def test_the_complete_documents_hold_every_field_but_the_alternatives(document: Document) -> None:
    kind = document["kind"]
    missing = {
        (kind, ".".join([*(str(step) for step in path if isinstance(step, str)), name]))
        for path in inside(document)
        if isinstance(at(document, path), dict)
        for name in schema_at(SCHEMAS[kind], path).get("properties", {})
        if not any(name in at(document, twin) for twin in twins(document, path))
    }
    assert missing == {entry for entry in ALTERNATIVES if entry[0] == kind}


def twins(document: Document, path: Path_) -> list[Path_]:
    """Entries of the same lists: one of them holding a field is enough."""
    shape = [step if isinstance(step, str) else None for step in path]
    return [p for p in inside(document) if [s if isinstance(s, str) else None for s in p] == shape]


@pytest.mark.parametrize("document", [*EXAMPLES, *OURS], ids=name_of)
def test_the_schema_accepts_what_the_types_accept(document: Document) -> None:
    validator = VALIDATORS[document["kind"]]
    validator.check_schema(validator.schema)
    assert [error.message for error in validator.iter_errors(document)] == []
    assert [error.message for error in validator.iter_errors(parse_object(document).to_wire())] == []


@pytest.mark.parametrize("document", [*EXAMPLES, *OURS], ids=name_of)
def test_the_schema_fills_in_the_same_defaults_as_the_types(document: Document) -> None:
    stored = with_defaults(SCHEMAS[document["kind"]]["properties"]["spec"], document["spec"])
    assert without_empty_lists(stored) == without_empty_lists(parse_object(document).to_wire()["spec"])
    assert parse_object({**document, "spec": stored}) == parse_object(document)


def integer_mistakes(field: Document, value: object) -> list[object]:
    return [field["minimum"] - 1, field["maximum"] + 1, str(value), 1.5]


def text_mistakes(field: Document, value: object) -> list[object]:
    return ["a" * (field.get("maxLength", 999) + 1), 7] + (["no such word"] if "enum" in field else [])


def list_mistakes(field: Document, value: Any) -> list[object]:
    return [value * (field["maxItems"] + 1), {}]


MISTAKES: dict[str, Callable[[Document, Any], list[object]]] = {
    "integer": integer_mistakes,
    "string": text_mistakes,
    "boolean": lambda *_: ["true", 1],
    "array": list_mistakes,
    "object": lambda *_: [[], "x"],
}


@pytest.mark.parametrize("document", EXAMPLES, ids=name_of)
def test_types_and_schema_refuse_the_same_mistake_in_every_field(document: Document) -> None:
    validator, schema = VALIDATORS[document["kind"]], SCHEMAS[document["kind"]]
    survivors = []
    for path in inside(document):
        field = schema_at(schema, path)
        for mistake in MISTAKES[field["type"]](field, at(document, path)):
            changed = replaced(document, path, mistake)
            if accepted(changed) or validator.is_valid(changed):
                survivors.append((path, mistake))
    assert survivors == []


@pytest.mark.parametrize("document", EXAMPLES, ids=name_of)
def test_null_and_unknown_fields_are_refused_everywhere(document: Document) -> None:
    for path in inside(document):
        assert not accepted(replaced(document, path, None)), path
        value = at(document, path)
        if "properties" in schema_at(SCHEMAS[document["kind"]], path):
            assert not accepted(replaced(document, path, {**value, "surprise": 1})), path


def some_removed(document: Document, seed: int) -> Document:
    """A copy that lacks about a third of its optional fields."""
    chance = random.Random(seed)
    thinner = copy.deepcopy(document)
    for path in sorted(inside(document), key=lambda p: (-len(p), str(p))):
        owner = schema_at(SCHEMAS[document["kind"]], path[:-1])
        optional = isinstance(path[-1], str) and path[-1] not in owner.get("required", [])
        if optional and path[-1] in owner.get("properties", {}) and chance.random() < 1 / 3:
            del at(thinner, path[:-1])[path[-1]]
    return thinner


@settings(max_examples=150, deadline=None)
@given(document=st.sampled_from(EXAMPLES), seed=st.integers(0, 2**32))
def test_whatever_is_left_out_a_document_that_is_accepted_survives_the_round_trip(
    document: Document, seed: int
) -> None:
    thinner = some_removed(document, seed)
    if not accepted(thinner):
        return
    first = parse_object(thinner)
    assert VALIDATORS[document["kind"]].is_valid(thinner)
    assert parse_object(first.to_wire()) == first
    stored = with_defaults(SCHEMAS[document["kind"]]["properties"]["spec"], thinner["spec"])
    assert parse_object({**thinner, "spec": stored}).spec == first.spec


def test_the_samples_are_one_fleet_of_three_classes_on_48_gpus_and_a_minimal_one_of_one() -> None:
    manifests = load_manifests(SAMPLES)
    assert [fleet.metadata.name for fleet in manifests.fleets] == ["assistants", "minimal"]
    assert [request_class.metadata.name for request_class in manifests.classes] == [
        "chat",
        "code",
        "summarise",
        "questions",
    ]
    assert sum(int(node["status"]["allocatable"]["nvidia.com/gpu"]) for node in manifests.nodes) == 48
