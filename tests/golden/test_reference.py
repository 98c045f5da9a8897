"""The reference is the code's: pages as generated, every field, setting and series in them, each true."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kvplan_cli.reference.__main__ import GENERATED, main, reference_pages
from kvplan_cli.reference.fields import Field, fields, rules
from kvplan_cli.reference.router_metrics import families, name_of, outcomes, router_metrics_page
from kvplan_cli.reference.settings import HOST_NAME, Setting, operator_settings, settings_page
from kvplan_operator.api.crdgen import object_schema
from kvplan_operator.api.kinds import KINDS
from kvplan_operator.errors import SettingsError
from kvplan_operator.settings import settings_from
from kvplan_router.core.values import Outcome
from kvplan_router.settings import RouterSettings, options, read_settings

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
MARK = "set-by-variable"


@pytest.mark.parametrize("name", list(reference_pages()))
def test_a_page_is_current(name: str) -> None:
    assert (REFERENCE / name).read_text(encoding="utf-8") == reference_pages()[name], "run `make crds`"


def test_every_field_of_every_kind_has_a_row_with_a_sentence() -> None:
    text = reference_pages()["api.md"]
    for kind in KINDS:
        properties = object_schema(kind)["properties"]
        for field in (each for part in ("spec", "status") for each in fields(properties[part], part)):
            assert f"| `{field.path}` | {field.type} |" in text
            assert field.meaning, field.path


def test_every_rule_of_the_api_server_stands_there_with_its_message() -> None:
    text = reference_pages()["api.md"]
    for kind in KINDS:
        for rule in rules(object_schema(kind), ""):
            assert f": {rule.message}\n  `{rule.cel}`\n" in text


SCHEMAS: dict[str, tuple[dict[str, Any], Field]] = {
    "a required text": (
        {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a|b$", "description": "Says."},
        Field("spec.x", "string", "required", "1 to 9 characters", "^a|b$", "Says."),
    ),
    "a number with one bound that is left out": (
        {"type": "number", "minimum": 0, "exclusiveMinimum": True, "default": 0.5},
        Field("spec.x", "number", "0.5", "above 0", "", ""),
    ),
    "a list of words that differ": (
        {"type": "array", "maxItems": 2, "x-kubernetes-list-type": "set", "items": {"type": "string", "enum": ["A"]}},
        Field("spec.x", "list of strings", "", "0 to 2 entries, each once, `A`", "", ""),
    ),
    "a list of objects with a key": (
        {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["a", "b"],
            "items": {"type": "object", "properties": {}},
        },
        Field("spec.x", "list of objects", "", "1 entries, each a and b once", "", ""),
    ),
    "a mapping to numbers": (
        {"type": "object", "maxProperties": 3, "additionalProperties": {"type": "integer", "minimum": 2}},
        Field("spec.x", "mapping to integers", "", "0 to 3 entries, 2 or more", "", ""),
    ),
}


@pytest.mark.parametrize("sentence", SCHEMAS)
def test_a_schema_in_words(sentence: str) -> None:
    schema, expected = SCHEMAS[sentence]
    required = ["x"] if expected.default == "required" else []
    assert list(fields({"properties": {"x": schema}, "required": required}, "spec")) == [expected]


@pytest.mark.parametrize("setting", list(operator_settings()), ids=lambda setting: setting.variable)
def test_the_variable_beside_a_setting_of_the_operator_sets_it(setting: Setting) -> None:
    path = setting.field.path.replace("NAME", "default")
    assert setting.field.meaning
    assert said(path, {"KVPLAN_PROMETHEUS_URL": "http://a", setting.variable: MARK}).startswith((MARK, path))


def said(path: str, environment: dict[str, str]) -> str:
    """What a setting is, or the path that a refusal names."""
    try:
        value: Any = settings_from("", environment)
    except SettingsError as error:
        return str(error)
    for name in path.split("."):
        value = value[name] if isinstance(value, dict) else getattr(value, name)
    return str(value[0] if isinstance(value, tuple) else value)


def test_every_option_of_the_router_has_a_row_with_its_variable_and_default() -> None:
    text = settings_page()
    for option in options():
        default = HOST_NAME if option.name == "identity" else option.default and f"`{option.default}`"
        assert f"| `--{option.name}` | `{option.variable}` |{f' {default}' if default else ''} |" in text
    given = {option.variable: option.default for option in options() if option.default and option.name != "identity"}
    least = {"KVPLAN_ROUTER_FLEET": "a/b", "KVPLAN_ROUTER_INSECURE": "yes", "KVPLAN_ROUTER_IDENTITY": "router"}
    assert read_settings([], given | least) == RouterSettings(namespace="a", fleet="b", insecure=True)


def test_every_family_of_the_routers_has_samples_and_every_outcome_a_sentence() -> None:
    assert all(family.samples for family in families())
    assert set(outcomes()) == set(Outcome)


def test_what_plans_are_made_from_is_exported_by_routers() -> None:
    read = [line.split(" | ")[0][2:] for line in (ROOT / "docs" / "metrics.md").read_text().splitlines()]
    exported = {name_of(family) for family in families()}
    assert {name for name in read if name.startswith("kvplan_router_")} <= exported
    assert all(f"| `{name}` |" in router_metrics_page() for name in exported)


def test_the_command_writes_a_directory_that_its_check_accepts(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kvplan_cli.reference"]
    subprocess.run([*command, str(tmp_path / "made")], check=True, capture_output=True)
    subprocess.run([*command, "--check", str(tmp_path / "made")], check=True, capture_output=True)


def test_the_check_names_what_differs_and_what_nothing_generates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "old.md").touch()
    (tmp_path / "api.md").write_text("# By hand\n", encoding="utf-8")
    assert main(["--check", str(tmp_path)]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"reference: {tmp_path}/api.md: it differs from the code: run `make crds`",
        f"reference: {tmp_path}/settings.md: it is missing: run `make crds`",
        f"reference: {tmp_path}/router-metrics.md: it is missing: run `make crds`",
        f"reference: {tmp_path}/old.md: it is no page of the reference: remove it",
    ]


def test_without_a_directory_the_command_says_how_it_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert capsys.readouterr().err == f"{GENERATED.usage}\n"
