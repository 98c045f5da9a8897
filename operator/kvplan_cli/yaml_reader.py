"""YAML and JSON text to plain documents, as strictly as ``kubectl apply`` reads them.

Inputs: text and the name of its source. Output: one value per document. A key that occurs twice in a mapping
is refused (the last one would win silently), dates stay text, and aliases may not blow a document up.
"""

import re
from collections.abc import Iterator
from typing import Any

import yaml

from kvplan_cli.errors import CommandError

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's parser where PyYAML was built with it: ten times as fast, and its nesting has a limit."""
MOST_DOCUMENTS = 2_000
"""Documents in one text; every one may be a List of many objects, as kubectl prints them."""
_MARKER = re.compile(r"^---(?=\s|$)", re.MULTILINE)
LARGEST_DOCUMENT = 2_000_000
"""Values in one document with its aliases written out."""


class _Loader(_Base):  # type: ignore[misc]  # one of two classes with the same interface
    """The safe loader without dates and without repeated keys."""

    yaml_implicit_resolvers = {  # noqa: RUF012  the base class's own shape
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[str] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value in seen:
            raise yaml.MarkedYAMLError(problem=f"the key {key.value!r} occurs twice", problem_mark=key.start_mark)
        seen.add(str(key.value))
    loader.flatten_mapping(node)
    document: dict[Any, Any] = loader.construct_mapping(node, deep=True)
    return document


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def read_yaml(text: str, source: str) -> list[Any]:
    """Every document of a text; empty ones are None.

    Raises:
        CommandError: the text is no YAML, holds too many documents, or its aliases make it too large.
    """
    if len(_MARKER.findall(text)) > MOST_DOCUMENTS:
        problem = f"it holds more than {MOST_DOCUMENTS} documents"
        raise CommandError(source, problem, "give the objects of one fleet, or a List as kubectl prints it")
    try:
        documents = list(yaml.load_all(text, Loader=_Loader))
    except yaml.YAMLError as error:
        raise CommandError(source, f"this is no YAML ({_where(error)})", "mend it or give another file") from error
    except RecursionError:
        raise CommandError(source, "it is nested too deeply", "give manifests as kubectl reads them") from None
    for document in documents:
        if _size(document, {}) > LARGEST_DOCUMENT:
            raise CommandError(source, "its aliases make it too large", "write the repeated parts out")
    return documents


def _where(error: yaml.YAMLError) -> str:
    """Line and cause in one line."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem or 'unreadable'}"
    return str(error).splitlines()[0]


def _size(value: Any, known: dict[int, float]) -> float:
    """Values in a document, aliases counted as often as they stand for something; infinite when circular."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        known[id(value)] = float("inf")
        known[id(value)] = 1 + sum(_size(inner, known) for inner in _parts(value))
    return known[id(value)]


def _parts(value: dict[Any, Any] | list[Any]) -> Iterator[Any]:
    yield from value.values() if isinstance(value, dict) else value
