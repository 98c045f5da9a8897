"""The structural form of what pydantic can say."""

from enum import StrEnum
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from kvplan_operator.api.schema import schema_at, structural_schema


class Colour(StrEnum):
    RED = "Red"


class Inner(BaseModel):
    """An inner object."""

    size: Annotated[int, Field(ge=0, le=5)] = 2
    note: str | None = None


class Outer(BaseModel):
    """An outer object."""

    above: Annotated[int, Field(gt=0, lt=9)]
    optional: Inner | None = Field(default=None, description="Maybe.")
    colour: Colour = Field(default=Colour.RED, description="A colour.")
    fixed: Literal["x"] = "x"
    usual: Inner = Inner()
    unusual: Inner = Inner(size=3)
    table: dict[str, Inner] = Field(default={}, max_length=4)
    row: tuple[Inner, ...] = Field(default=(), max_length=4)


class Either(BaseModel):
    """A field of two types."""

    value: int | str


PROPERTIES = structural_schema(Outer)["properties"]


def test_an_exclusive_bound_is_a_bound_and_a_boolean() -> None:
    assert PROPERTIES["above"] == {
        "type": "integer", "format": "int64", "minimum": 0, "exclusiveMinimum": True,
        "maximum": 9, "exclusiveMaximum": True,
    }  # fmt: skip


def test_an_optional_field_has_the_schema_of_its_value_and_no_default() -> None:
    assert PROPERTIES["optional"]["type"] == "object"
    assert PROPERTIES["optional"]["description"] == "Maybe."
    assert "default" not in PROPERTIES["optional"]


def test_words_are_enumerations() -> None:
    assert PROPERTIES["colour"] == {
        "description": "A colour.", "type": "string", "default": "Red", "enum": ["Red"],
    }  # fmt: skip
    assert PROPERTIES["fixed"]["enum"] == ["x"]


def test_an_object_defaults_to_what_its_own_fields_do_not_say() -> None:
    assert PROPERTIES["usual"]["default"] == {}
    assert PROPERTIES["unusual"]["default"] == {"size": 3}


def test_empty_lists_and_maps_are_absent_by_default() -> None:
    assert PROPERTIES["table"]["additionalProperties"]["properties"]["size"]["default"] == 2
    assert "default" not in PROPERTIES["table"]
    assert "default" not in PROPERTIES["row"]


def test_a_field_of_two_types_is_refused() -> None:
    with pytest.raises(TypeError, match="a field of 2 types has no structural schema"):
        structural_schema(Either)


def test_a_path_leads_through_objects_lists_and_maps() -> None:
    schema = structural_schema(Outer)
    assert schema_at(schema, ["row", 3, "size"])["maximum"] == 5
    assert schema_at(schema, ["table", "any", "size"])["maximum"] == 5
    assert schema_at(schema, ["nowhere", "at", "all"]) == {}
