"""Whatever stands in a document, the answer is an object or a list of problems, never another error."""

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kvplan_operator.api.manifests import load_manifests
from kvplan_operator.errors import ManifestError

EXAMPLES = [
    yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parents[1] / "golden" / "api").glob("*.yaml"))
]

HOSTILE: list[object] = [
    None, 1, -1, 1.5, float("nan"), float("inf"), True, "", "x" * 5000, "two\nlines", "\ud800", b"x", 10**30,
    [], [None], [[1]], {}, {1: 2}, {None: 1}, {(1, 2): 3}, {"a": None},
]  # fmt: skip
NAMES: list[object] = [1, None, True, (1, 2), "surprise", "two\nlines", ""]


def containers(value: object) -> Iterator[dict[Any, Any] | list[Any]]:
    if isinstance(value, dict | list):
        yield value
        for inner in list(value.values()) if isinstance(value, dict) else value:
            yield from containers(inner)


def spoil(document: dict[str, Any], chance: random.Random) -> None:
    owner = chance.choice([found for found in containers(document) if found])
    value = copy.deepcopy(chance.choice(HOSTILE))
    if isinstance(owner, list):
        owner[chance.randrange(len(owner))] = value
    else:
        owner[chance.choice([*owner, *NAMES])] = value


def refusal_of(document: dict[str, Any]) -> ManifestError | None:
    try:
        load_manifests([document])
    except ManifestError as refusal:
        return refusal
    return None


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**32), times=st.integers(1, 4))
def test_a_spoilt_document_is_read_or_refused_with_words(seed: int, times: int) -> None:
    chance = random.Random(seed)
    document = copy.deepcopy(chance.choice(EXAMPLES))
    for _ in range(times):
        spoil(document, chance)
    refusal = refusal_of(document)
    if refusal is not None:
        assert refusal.problems
        assert all(problem.field and problem.remedy for problem in refusal.problems)
        assert str(refusal).encode()
        assert len(str(refusal).splitlines()) == len(refusal.problems)
