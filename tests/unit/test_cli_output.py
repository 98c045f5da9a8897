"""Tables, YAML, JSON: one renderer, no colour in a pipe, no markup in values."""

import io
import json

import pytest
import yaml

from kvplan_cli.files import yaml_documents
from kvplan_cli.output import Format, View, cell, make_console, number, percent, rendered, show, signed, table

VIEW = View({"name": "chät", "shares": [1, 2], "text": "a\nb\n"}, [table("T [bold]", ["name", "n"], [["[red]x", 1.5]])])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"), (True, "yes"), (False, "no"), (1234567, "1,234,567"), (0.000123456, "0.0001235"),
        (12345.6, "12,346"), (float("nan"), "–"), (float("-inf"), "–"), ("a", "a"), (0.0, "0"), (999.96, "1000"),
    ],
)  # fmt: skip
def test_a_value_has_one_spelling(value: object, text: str) -> None:
    assert cell(value) == text


def test_numbers_percentages_and_differences_are_short() -> None:
    assert number(0.5) == "0.5"
    assert percent(0.12345) == "12.3 %"
    assert percent(float("inf")) == "–"
    assert (signed(2.0), signed(-0.5), signed(0.0)) == ("+2", "−0.5", "0")


def test_json_and_yaml_hold_the_same_document() -> None:
    assert json.loads(rendered(VIEW.document, Format.JSON)) == VIEW.document
    assert yaml.safe_load(rendered(VIEW.document, Format.YAML)) == VIEW.document


@pytest.mark.parametrize("text", ["y", "N", "1e3", "12E-4", "-3e5", "0o17"])
def test_a_text_that_kubectl_would_misread_is_quoted(text: str) -> None:
    assert yaml_documents([{"value": text}]) == f"value: '{text}'\n"


def test_json_stays_valid_where_a_number_is_not_finite() -> None:
    assert json.loads(rendered({"bound": float("-inf")}, Format.JSON)) == {"bound": "-inf"}


def test_a_pipe_gets_no_escape_codes_and_no_markup_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    show(VIEW, Format.TABLE)
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert "[red]x" in text
    assert "T [bold]" in text


def test_a_pipe_is_wide_enough_that_nothing_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    stream = io.StringIO()
    make_console(stream).print(table("T", ["a", "b"], [["x" * 90, "y" * 90]]))
    assert "x" * 90 + "  " + "y" * 90 in stream.getvalue()


def test_columns_of_numbers_are_flush_right() -> None:
    shown = table("T", ["a", "number", "text"], [["1", 1, "x"], ["2", 22, "1"]])
    assert [column.justify for column in shown.columns] == ["left", "right", "left"]
