"""The page of settings: of the operator and of the routers.

Inputs: ``kvplan_operator.settings``, ``kvplan_router.settings``. Output: Markdown. What a setting of the operator means
stands in its class under ``Attributes``. Pure.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kvplan_cli.reference.fields import Field, fields
from kvplan_cli.reference.layout import code, plain, table
from kvplan_operator.api.schema import Schema, structural_schema
from kvplan_operator.settings import FILE_VARIABLE, PREFIX, Settings
from kvplan_router.settings import Option, options

HEAD = f"""# Settings

Generated from the settings of the operator and of the routers by `make crds`; do not edit.

## The operator

A YAML file that `{FILE_VARIABLE}` names, and variables, which win. Lists in variables have commas. The variables of a
Prometheus make the profile `default`; others are written in the file. How the process lives is in
[operator.md](../operator.md).

"""

ROUTER_HEAD = """
## The routers

`kvplan-router` takes options, and each as a variable; an option wins. How the process lives is in
[router.md](../router.md).

"""

PROFILE = "prometheus.profiles.NAME"
"""Path of a connection in the file; the variables are of the one named ``default`` and say ``prometheus`` alone."""
HOST_NAME = "the host's name"


@dataclass(frozen=True)
class Setting:
    """One setting of the operator.

    Attributes:
        field: as in the file.
        variable: of the environment.
    """

    field: Field
    variable: str


def settings_page() -> str:
    """The document."""
    heads = ("setting", "variable", "type", "default", "limits", "meaning")
    operator = table(heads, map(_setting_row, operator_settings()))
    router = table(("option", "variable", "default", "values", "meaning"), map(_option_row, options()))
    return f"{HEAD}{operator}{ROUTER_HEAD}{router}"


def operator_settings() -> Iterator[Setting]:
    """Every single value that the operator can be given."""
    for field in _described(structural_schema(Settings), ""):
        words = field.path.replace(PROFILE, "prometheus").split(".")
        yield Setting(field, PREFIX + "_".join(words).upper())


def _described(section: Schema, path: str) -> Iterator[Field]:
    """The values below a section with their meaning, sections within it last."""
    meanings = attributes(section.get("description", ""))
    inner = {name: part for name, part in section["properties"].items() if _section_of(part)}
    flat = {**section, "properties": {n: part for n, part in section["properties"].items() if n not in inner}}
    for field in fields(flat, path):
        yield replace(field, path=field.path.lstrip("."), meaning=meanings[field.path.rpartition(".")[2]])
    for name, part in inner.items():
        entry = ".NAME" if "additionalProperties" in part else ""
        yield from _described(_section_of(part), f"{path}.{name}{entry}")


def _section_of(schema: Schema) -> Schema:
    """The section behind a field, or behind the entries of a mapping; empty for a single value."""
    section: Schema = schema.get("additionalProperties", schema)
    return section if "properties" in section else {}


def attributes(docstring: str) -> dict[str, str]:
    """What a docstring says of each attribute."""
    block = docstring.partition("Attributes:\n")[2]
    parts = re.split(r"^ +(\w+): ", block, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], map(plain, parts[1::2]), strict=True))


def _setting_row(setting: Setting) -> tuple[str, ...]:
    field = setting.field
    limits = ", ".join(filter(None, (field.limits, code(field.pattern))))
    default = field.default if field.default == "required" else code(field.default.strip('"'))
    return code(field.path), code(setting.variable), field.type, default, limits, field.meaning


def _option_row(option: Option) -> tuple[str, ...]:
    default = HOST_NAME if option.name == "identity" else code(option.default)
    choices = ", ".join(map(code, option.choices))
    return code(f"--{option.name}"), code(option.variable), default, choices, option.about
