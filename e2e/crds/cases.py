"""Read the tables of right and wrong objects: `cases/*.yaml`, one file per kind.

Inputs: a base object and, for each case, paths to `set` and to `remove` in a copy of it; numbers in a path count list
entries. `says` holds what the API server answers, one line per problem. Outputs: cases. Long values are written with
tags: `!repeat [a, 64]`, `!numbered [name-, 33, {other: fields}, key]`, `!labels 33`, `!quantiles 65`.
"""

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

Document = dict[str, Any]

_FOLDER = Path(__file__).with_name("cases")


@dataclass(frozen=True)
class Case:
    """One object.

    Attributes:
        what: a sentence on what is special about it.
        document: the object.
        says: the lines of the refusal; none for an object that is accepted.
    """

    what: str
    document: Document
    says: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the name of the test."""
        return f"{self.document['kind']}: {self.what}"


def valid_cases() -> list[Case]:
    """Return the objects that are accepted."""
    return [case for table in _tables() for case in _cases(table, "valid")]


def wrong_cases() -> list[Case]:
    """Return the objects that are refused."""
    return [case for table in _tables() for case in _cases(table, "wrong")]


def bases() -> list[Document]:
    """Return the object of each kind that the cases are made from; each is the smallest useful one."""
    return [table["base"] for table in _tables()]


def _tables() -> list[Document]:
    files = sorted(_FOLDER.glob("*.yaml"))
    return [yaml.load(file.read_text(encoding="utf-8"), _TagLoader) for file in files]  # noqa: S506 - a safe loader


def _cases(table: Document, section: str) -> list[Case]:
    return [_case(table["base"], entry) for entry in table[section]]


def _case(base: Document, entry: Document) -> Case:
    document = copy.deepcopy(base)
    for path in entry.get("remove", []):
        *owner, name = _steps(path)
        del _at(document, owner)[name]
    for path, value in entry.get("set", {}).items():
        *owner, name = _steps(path)
        _at(document, owner)[name] = value
    says = entry.get("says", ())
    return Case(entry["what"], document, (says,) if isinstance(says, str) else tuple(says))


def _steps(path: str) -> list[str | int]:
    return [int(step) if step.isdigit() else step for step in path.split(".")]


def _at(value: Any, path: list[str | int]) -> Any:
    """Follow a path; a mapping that is missing on the way is made."""
    for step in path:
        value = value[step] if isinstance(step, int) else value.setdefault(step, {})
    return value


class _TagLoader(yaml.SafeLoader):
    """Plain YAML and the tags for long values."""


def _arguments(loader: yaml.SafeLoader, node: yaml.Node) -> list[Any]:
    values: list[Any] = loader.construct_sequence(cast(yaml.SequenceNode, node), deep=True)
    return values


def _count(loader: yaml.SafeLoader, node: yaml.Node) -> int:
    return int(loader.construct_scalar(cast(yaml.ScalarNode, node)))


def _repeat(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    what, times = _arguments(loader, node)
    return copy.deepcopy(what * times) if isinstance(what, list) else str(what) * times


def _numbered(loader: yaml.SafeLoader, node: yaml.Node) -> list[Document]:
    prefix, count, fields, *key = _arguments(loader, node)
    name = key[0] if key else "name"
    return [{name: f"{prefix}{number}", **copy.deepcopy(fields)} for number in range(count)]


def _labels(loader: yaml.SafeLoader, node: yaml.Node) -> dict[str, str]:
    return {f"label-{number}": "" for number in range(_count(loader, node))}


def _quantiles(loader: yaml.SafeLoader, node: yaml.Node) -> list[Document]:
    return [{"probabilityMilli": number, "tokens": number} for number in range(_count(loader, node))]


_TagLoader.add_constructor("!repeat", _repeat)
_TagLoader.add_constructor("!numbered", _numbered)
_TagLoader.add_constructor("!labels", _labels)
_TagLoader.add_constructor("!quantiles", _quantiles)
