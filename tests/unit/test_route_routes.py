"""Where a class goes while only part of the plan's groups serve."""

from typing import Any

import pytest

from kvplan_operator.route.routes import effective_routes


def route(configuration: str, share: int, tokens: int = 64) -> dict[str, Any]:
    return {"configuration": configuration, "shareMilli": share, "reservationTokens": tokens}


NEW = [route("tp1", 250, 16), route("tp2", 750, 32)]
OLD = [route("tp4", 1000, 48)]

CASES: dict[str, tuple[list[dict[str, Any]], dict[str, int], list[dict[str, Any]]]] = {
    "every group serves": (OLD, {"tp1": 1, "tp2": 3}, NEW),
    "none serves": (OLD, {}, NEW),
    "one configuration is not up yet": ([], {"tp2": 3}, [route("tp2", 1000, 32)]),
    "one group of three is down": ([], {"tp1": 1, "tp2": 2}, [route("tp1", 333, 16), route("tp2", 667, 32)]),
    "the old groups still serve what is not up": (
        OLD,
        {"tp1": 1, "tp4": 2},
        [route("tp1", 250, 16), route("tp4", 750, 48)],
    ),
    "only old groups serve": (OLD, {"tp4": 1}, OLD),
    "old groups have nothing to do once all is up": (OLD, {"tp1": 1, "tp2": 3, "tp4": 2}, NEW),
}


@pytest.mark.parametrize(("before", "serving", "expected"), CASES.values(), ids=CASES.keys())
def test_routes_when(before: list[dict[str, Any]], serving: dict[str, int], expected: list[dict[str, Any]]) -> None:
    assert effective_routes(NEW, before, serving, {"tp1": 1, "tp2": 3}) == expected


def test_a_class_stays_where_it_was_until_its_own_groups_serve_though_the_plan_keeps_those_for_others() -> None:
    wanted, own = {"tp2": 2, "tp4": 1}, [route("tp2", 1000)]
    assert effective_routes(own, OLD, {"tp4": 1}, wanted) == OLD
    assert effective_routes(own, OLD, {"tp2": 1, "tp4": 1}, wanted) == [route("tp2", 500), route("tp4", 500, 48)]
    assert effective_routes(own, OLD, {"tp2": 2, "tp4": 1}, wanted) == own


def test_what_is_rejected_stays_rejected() -> None:
    routes = effective_routes([route("tp1", 333), route("tp2", 400)], [], {"tp1": 2}, {"tp1": 3, "tp2": 1})
    assert sum(r["shareMilli"] for r in routes) == 733


def test_a_class_that_is_rejected_altogether_has_no_routes() -> None:
    assert effective_routes([], OLD, {"tp4": 1}, {"tp1": 1}) == []
