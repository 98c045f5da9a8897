"""What changes between two plans: rows, sentences and pods that restart."""

from typing import Any

import pytest

from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.plan.diff import Change, diff_plans
from kvplan_solver.errors import InvalidInput

FLAGS = [{"name": "max-num-seqs", "value": "16"}]


def group(*nodes: str, name: str = "tp2", **changes: Any) -> dict[str, Any]:
    """Groups of one configuration; ``a+b`` is one over two nodes."""
    plain: dict[str, Any] = {
        "configuration": name,
        "replicas": len(nodes),
        "placements": [{"stages": node.split("+")} for node in nodes],
        "engineFlags": FLAGS,
        "kvCapacityTokens": 64_000,
        "budgetTokens": 50_000,
        "maxSequences": 16,
    }
    return plain | changes


def chat(shares: dict[str, int], **changes: Any) -> dict[str, Any]:
    """The class chat with shares by configuration."""
    plain: dict[str, Any] = {
        "name": "chat",
        "reservationTokens": 1024,
        "fractileMilli": 909,
        "routes": [
            {"configuration": name, "shareMilli": share, "reservationTokens": 512} for name, share in shares.items()
        ],
        "admitMilli": sum(shares.values()),
        "maxPromptTokens": 2000,
        "maxOutputTokens": 500,
    }
    return plain | changes


def plan(groups: list[dict[str, Any]], classes: list[dict[str, Any]] | None = None, fleet: str = "demo") -> RoutingPlan:
    """A plan written by hand."""
    spec = {"fleetName": fleet, "inputsDigest": "a" * 64, "method": "Certified", "groups": groups}
    return RoutingPlan.model_validate({"metadata": {"name": f"{fleet}-x"}, "spec": spec | {"classes": classes or []}})


Expected = tuple[list[tuple[Change, str]], tuple[int, int, int]]

GROUPS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], Expected]] = {
    "nothing": ([group("a", "b")], [group("a", "b")], ([], (0, 0, 2))),
    "a group more": (
        [group("a")],
        [group("a", "b")],
        ([(Change.GROUP_ADDED, "tp2: one group more on b")], (1, 0, 1)),
    ),
    "two groups more on one node": (
        [group("a")],
        [group("a", "b", "b")],
        ([(Change.GROUP_ADDED, "tp2: 2 groups more on b")], (2, 0, 1)),
    ),
    "a group less": (
        [group("a", "b")],
        [group("a")],
        ([(Change.GROUP_REMOVED, "tp2: one group less on b")], (0, 1, 1)),
    ),
    "a configuration goes": (
        [group("a"), group("b", name="tp4")],
        [group("a")],
        ([(Change.GROUP_REMOVED, "tp4: one group less on b")], (0, 1, 1)),
    ),
    "a group moves": (
        [group("a", "b")],
        [group("a", "c")],
        ([(Change.GROUP_MOVED, "tp2: a group moves from b to c")], (1, 0, 1)),
    ),
    "a flag changes and restarts what stays": (
        [group("a", "b")],
        [group("a", "b", engineFlags=[{"name": "max-num-seqs", "value": "24"}])],
        ([(Change.FLAG, "tp2: --max-num-seqs changes from 16 to 24")], (2, 0, 0)),
    ),
    "a flag appears": (
        [group("a", engineFlags=[])],
        [group("a")],
        ([(Change.FLAG, "tp2: --max-num-seqs changes from unset to 16")], (1, 0, 0)),
    ),
    "a group over two nodes counts its pods": (
        [],
        [group("a+b")],
        ([(Change.GROUP_ADDED, "tp2: one group more on a+b")], (2, 0, 0)),
    ),
    "groups without placements are counted": (
        [group("a", placements=[], replicas=1)],
        [group("a", placements=[], replicas=3)],
        ([(Change.GROUP_ADDED, "tp2: 2 groups more on any node")], (2, 0, 1)),
    ),
}


@pytest.mark.parametrize(("old", "new", "expected"), GROUPS.values(), ids=GROUPS.keys())
def test_groups_differ_when(old: list[dict[str, Any]], new: list[dict[str, Any]], expected: Expected) -> None:
    found = diff_plans(plan(old), plan(new))
    rows, pods = expected
    assert [(row.change, row.sentence) for row in found.rows] == rows
    assert (found.restarted, found.stopped, found.kept) == pods
    assert all(row.cold for row in found.rows)


BOTH = [group("a"), group("b", name="tp4")]
CLASSES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "the reservation grows": (
        chat({"tp2": 1000}),
        chat({"tp2": 1000}, reservationTokens=2048),
        ["chat: reserves 2048 instead of 1024 tokens a request"],
    ),
    "shares move": (
        chat({"tp2": 1000}),
        chat({"tp2": 250, "tp4": 750}),
        ["chat: 25 % goes to tp2 instead of 100 %", "chat: 75 % goes to tp4 instead of 0 %"],
    ),
    "less is admitted": (
        chat({"tp2": 1000}),
        chat({"tp2": 985}),
        ["chat: 98.5 % is admitted instead of 100 %", "chat: 98.5 % goes to tp2 instead of 100 %"],
    ),
    "caching moves": (
        chat({"tp2": 500, "tp4": 500}, prefixCachedOn=["tp2"]),
        chat({"tp2": 500, "tp4": 500}, prefixCachedOn=["tp4"]),
        ["chat: tp2 no longer keeps its shared prefix", "chat: tp4 keeps its shared prefix"],
    ),
    "nothing": (chat({"tp2": 1000}), chat({"tp2": 1000}), []),
}


@pytest.mark.parametrize(("old", "new", "sentences"), CLASSES.values(), ids=CLASSES.keys())
def test_classes_differ_when(old: dict[str, Any], new: dict[str, Any], sentences: list[str]) -> None:
    found = diff_plans(plan(BOTH, [old]), plan(BOTH, [new]))
    assert [row.sentence for row in found.rows] == sentences
    assert found.hot_only is bool(sentences)
    assert found.empty is (not sentences)
    assert found.restarted == 0


def test_classes_come_and_go() -> None:
    code = chat({"tp2": 1000}, name="code")
    found = diff_plans(plan(BOTH, [chat({"tp2": 1000})]), plan(BOTH, [code]))
    assert [(row.change, row.subject) for row in found.rows] == [
        (Change.CLASS_REMOVED, "chat"),
        (Change.CLASS_ADDED, "code"),
    ]


def test_a_first_plan_starts_everything() -> None:
    found = diff_plans(None, plan(BOTH, [chat({"tp2": 1000})]))
    assert (found.old, found.restarted, found.stopped, found.kept) == ("", 2, 0, 0)
    assert [row.change for row in found.rows] == [Change.GROUP_ADDED, Change.GROUP_ADDED, Change.CLASS_ADDED]


def test_cold_rows_come_first() -> None:
    found = diff_plans(plan(BOTH, [chat({"tp2": 1000})]), plan([group("c"), BOTH[1]], [chat({"tp4": 1000})]))
    assert [row.cold for row in found.rows] == sorted((row.cold for row in found.rows), reverse=True)


def test_plans_of_two_fleets_are_not_compared() -> None:
    with pytest.raises(InvalidInput, match="compare plans of one fleet, here demo"):
        diff_plans(plan([], fleet="other"), plan([]))
