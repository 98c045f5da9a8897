"""What every API type shares: wire names, strictness, and rules written once for Python and for CEL.

A type lists its cross-field rules as ``Rule`` values. Each holds the CEL expression that the API server
evaluates and the Python predicate of the same meaning, so that the command and the cluster refuse the
same objects. List keys (``keyed_by``) and sets (``SET``) are checked for duplicates in the same way.

Inputs: plain JSON values. Outputs: frozen models. Must not do I/O or read a clock.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, JsonValue, model_validator
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError

ATOMIC: dict[str, JsonValue] = {"x-kubernetes-list-type": "atomic"}
"""A list that is replaced as a whole."""
SET: dict[str, JsonValue] = {"x-kubernetes-list-type": "set"}
"""A list without duplicates, merged by value."""


def keyed_by(*keys: str) -> dict[str, JsonValue]:
    """A list merged by the given wire names, which are unique together."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


@dataclass(frozen=True)
class Rule:
    """One cross-field rule.

    Attributes:
        cel: the expression the API server evaluates; ``self`` is the object. It guards every field
            that may be absent with ``has``, defaulted ones too: the default of an object is checked as it
            stands, before the defaults of its fields are filled in.
        message: what to do about a violation.
        field: wire name of the field to blame, or names with dots between; empty for the object itself.
        holds: the same predicate in Python; None for transition rules, which need the old object.
    """

    cel: str
    message: str
    field: str = ""
    holds: Callable[[Any], bool] | None = None

    def as_validation(self) -> dict[str, JsonValue]:
        """The ``x-kubernetes-validations`` entry."""
        entry: dict[str, JsonValue] = {"rule": self.cel, "message": self.message}
        return entry | ({"fieldPath": f".{self.field}"} if self.field else {})


class ApiModel(BaseModel):
    """A frozen API type: camelCase on the wire, unknown fields refused, rules checked after parsing."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, extra="forbid", frozen=True,
    )  # fmt: skip

    rules: ClassVar[tuple[Rule, ...]] = ()

    @model_validator(mode="after")
    def _check_rules(self) -> Self:
        for rule in self.rules:
            if rule.holds is not None and not rule.holds(self):
                raise violation(rule.field, rule.message)
        return self

    @model_validator(mode="after")
    def _check_list_keys(self) -> Self:
        for unique in _unique_lists(type(self)):
            duplicate = unique.repeated(getattr(self, unique.name))
            if duplicate is not None:
                raise violation(unique.wire_name, f"{duplicate} occurs twice: entries must be unique")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler.resolve_ref_schema(handler(core_schema))
        if cls.rules:
            schema["x-kubernetes-validations"] = [rule.as_validation() for rule in cls.rules]
        return schema

    def to_wire(self) -> dict[str, JsonValue]:
        """The JSON value of this object: wire names, defaults spelled out, absent fields left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def violation(field: str, remedy: str) -> PydanticCustomError:
    """The error of a broken rule; ``field`` is the wire name to blame, or empty."""
    return PydanticCustomError("rule", "{remedy}", {"field": field, "remedy": remedy})


@dataclass(frozen=True)
class _UniqueList:
    """A list whose entries must differ.

    Attributes:
        name: of the field.
        wire_name: the same on the wire.
        keys: wire names of what tells entries apart; empty where that is the whole entry.
    """

    name: str
    wire_name: str
    keys: tuple[str, ...]

    def repeated(self, value: Any) -> str | None:
        """The first entry that occurs a second time, in words; None where all differ."""
        return _first_repeated(map(self._shown, value)) if isinstance(value, tuple) else None

    def _shown(self, item: Any) -> str:
        if not self.keys:
            return str(item)
        model: type[ApiModel] = type(item)
        return ", ".join(f"{key} {getattr(item, _attribute(model, key))}" for key in self.keys)


@cache
def _unique_lists(model: type[ApiModel]) -> tuple[_UniqueList, ...]:
    """Those of a type; read once, because every object of it is checked."""
    return tuple(found for name, field in model.model_fields.items() if (found := _unique_list(name, field)))


def _unique_list(name: str, field: FieldInfo) -> _UniqueList | None:
    extra = field.json_schema_extra
    if not isinstance(extra, dict):
        return None
    keys = extra.get("x-kubernetes-list-map-keys")
    if isinstance(keys, list):
        return _UniqueList(name, field.alias or name, tuple(map(str, keys)))
    return _UniqueList(name, field.alias or name, ()) if extra.get("x-kubernetes-list-type") == "set" else None


@cache
def _attribute(model: type[ApiModel], wire_name: str) -> str:
    return next(name for name, field in model.model_fields.items() if (field.alias or name) == wire_name)


def _first_repeated(values: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None
