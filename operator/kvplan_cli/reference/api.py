"""The page of the API: every field of the three kinds, the rules between them, what ``kubectl get`` prints.

Inputs: ``kvplan_operator.api``. Output: Markdown. Pure.
"""

from collections.abc import Iterator

from kvplan_cli.reference.fields import Field, RuleText, fields, rules
from kvplan_cli.reference.layout import code, plain, table
from kvplan_operator.api.crdgen import object_schema
from kvplan_operator.api.kinds import KINDS, Kind
from kvplan_operator.api.labels import API_VERSION
from kvplan_operator.api.schema import Schema

HEAD = f"""# The API, field by field

Generated from `kvplan_operator/api` by `make crds`; do not edit. `apiVersion: {API_VERSION}`; what
conditions say is in [conditions.md](../conditions.md).

Numbers are integers; a name that ends in `Milli` counts thousandths. A field without a default may be left out, and
then its meaning says what counts instead. Unknown fields are refused, by `kubectl apply` and by the `kvplan` command.
A *rule* is checked by the API server (CEL) and by the command, in the same words. A number such as *p3* under limits
is one of the [patterns](#patterns).
"""


def api_page() -> str:
    """The document."""
    patterns = list(dict.fromkeys(each.pattern for each in _all_fields() if each.pattern))
    kinds = "".join(_kind(kind, patterns) for kind in KINDS)
    listed = "".join(f"- p{number}: {code(text)}\n" for number, text in enumerate(patterns, 1))
    return f"{HEAD}{kinds}\n## Patterns\n\n{listed}"


def _all_fields() -> Iterator[Field]:
    for kind in KINDS:
        properties = object_schema(kind)["properties"]
        for part in ("spec", "status"):
            yield from fields(properties[part], part)


def _kind(kind: Kind, patterns: list[str]) -> str:
    schema = object_schema(kind)
    columns = table(
        ("column", "meaning"),
        ((f"{each.name}{' (`-o wide`)' if each.wide else ''}", each.description) for each in kind.columns),
    )
    own = list(rules({**schema, "properties": {}}, ""))
    head = f"\n## {kind.name}\n\n{plain(schema['description'])} `kubectl get {kind.short_name}` prints:\n\n{columns}"
    parts = (_part(schema["properties"][name], name, patterns) for name in ("spec", "status"))
    return f"{head}{_rules(own)}{''.join(parts)}"


def _part(schema: Schema, path: str, patterns: list[str]) -> str:
    """A part of the object: its single fields, then a section for each field that has fields."""
    deep = {name: inner for name, inner in schema["properties"].items() if _has_fields(inner)}
    flat = {**schema, "properties": {n: inner for n, inner in schema["properties"].items() if n not in deep}}
    sections = [_section(flat, path, patterns)]
    sections += [_section(_only(schema, name), path, patterns, f"{path}.{name}") for name in deep]
    return "".join(sections)


def _has_fields(schema: Schema) -> bool:
    return "properties" in schema or "properties" in schema.get("items", {})


def _only(schema: Schema, name: str) -> Schema:
    """The object with one of its fields and none of its own rules."""
    return {"properties": {name: schema["properties"][name]}, "required": schema.get("required", ())}


def _section(schema: Schema, path: str, patterns: list[str], title: str = "") -> str:
    rows = [_row(each, patterns) for each in fields(schema, path)]
    heads = ("field", "type", "default", "limits", "meaning")
    return f"\n### {title or path}\n\n{table(heads, rows) if rows else ''}{_rules(list(rules(schema, path)))}"


def _row(field: Field, patterns: list[str]) -> tuple[str, ...]:
    pattern = f"p{patterns.index(field.pattern) + 1}" if field.pattern else ""
    limits = ", ".join(filter(None, (field.limits, pattern)))
    default = field.default if field.default in ("", "required") else code(field.default)
    return code(field.path), field.type, default, limits, plain(field.meaning)


def _rules(found: list[RuleText]) -> str:
    lines = (f"- {code(rule.path.lstrip('.') or 'the object')}: {rule.message}\n  `{rule.cel}`\n" for rule in found)
    return "\nRules:\n\n" + "".join(lines) if found else ""
