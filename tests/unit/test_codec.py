"""JSON of instances and results: what is wrong is named by its path."""

import json
from typing import Any

import pytest

from kvplan_solver.codec import dump_json, load_instance
from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import Instance
from tests.builders import a_class, a_configuration, nodes


def _plain() -> dict[str, Any]:
    text = dump_json(Instance((a_class(),), (a_configuration(),), nodes(2)))
    return dict(json.loads(text))


def _without_classes(plain: dict[str, Any]) -> None:
    del plain["classes"]


def _unknown_field(plain: dict[str, Any]) -> None:
    plain["colour"] = "blue"


def _text_for_a_number(plain: dict[str, Any]) -> None:
    plain["classes"][0]["arrival_rate"] = "fast"


def _truth_for_a_number(plain: dict[str, Any]) -> None:
    plain["block_tokens"] = True


def _unknown_ambiguity(plain: dict[str, Any]) -> None:
    plain["ambiguity"] = "Wasserstein7"


def _object_for_a_list(plain: dict[str, Any]) -> None:
    plain["nodes"] = {}


@pytest.mark.parametrize(
    ("why", "break_it", "expected"),
    [
        ("a field is missing", _without_classes, "classes is absent: expected present"),
        ("a field is unknown", _unknown_field, "colour is 'blue': expected a known field"),
        ("a number is text", _text_for_a_number, "arrival_rate is 'fast': expected a number"),
        ("a number is a truth value", _truth_for_a_number, "block_tokens is True: expected a whole number"),
        ("an enum has no such member", _unknown_ambiguity, "expected one of"),
        ("a list is an object", _object_for_a_list, "expected a list"),
    ],
)
def test_bad_json_values_are_named(why: str, break_it: Any, expected: str) -> None:
    plain = _plain()
    break_it(plain)
    with pytest.raises(InvalidInput, match=expected):
        load_instance(json.dumps(plain))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\x00"])
def test_text_that_is_no_instance_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        load_instance(text)
