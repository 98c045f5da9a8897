"""Where a class goes while a rollout is half done: the plan's routes, bent to the groups that serve now.

Inputs: a plan's routes of one class, those of the index in force, serving and planned groups. Output: routes whose
shares add up to the same. A configuration gets its share as far as its groups serve; the rest goes to groups that
the plan is about to remove, as long as they serve, else stays on configurations that the class leaves and the plan
keeps for others, else goes to the other planned ones. With every planned group serving, the routes are the plan's
own. ``as_serving`` is the plan with those routes and groups, for the key planner, so that keys follow the same. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kvplan_operator.plan.planned import Planned
from kvplan_solver.units import from_milli

Route = Mapping[str, Any]
Routes = dict[str, list[dict[str, Any]]]
"""By class."""


def routes_in_force(planned: Planned, before: Mapping[str, Any] | None, serving: Iterable[str]) -> Routes:
    """The routes of every class of a plan.

    Args:
        planned: the plan in force.
        before: the index in force; None before the first.
        serving: configuration of each group that serves.
    """
    known = {entry["name"]: entry["routes"] for entry in (before or {"classes": []})["classes"]}
    wanted = {group.configuration: group.replicas for group in planned.plan.spec.groups}
    groups = Counter(serving)
    return {
        c.name: effective_routes([r.to_wire() for r in c.routes], known.get(c.name, []), groups, wanted)
        for c in planned.plan.spec.classes
    }


def as_serving(planned: Planned, routes: Routes, serving: Iterable[str]) -> Planned:
    """The plan as if it had decided on the groups that serve and the routes in force."""
    names = [k.name for k in planned.instance.configurations]
    groups = Counter(serving)
    shares = np.zeros((len(planned.instance.classes), len(names)))
    for i, c in enumerate(planned.instance.classes):
        for route in routes[c.name]:
            if route["configuration"] in names:
                shares[i, names.index(route["configuration"])] = from_milli(route["shareMilli"])
    counts = tuple(groups[name] for name in names)
    return replace(planned, result=replace(planned.result, groups=counts, routing=shares))


def effective_routes(
    planned: Sequence[Route], before: Sequence[Route], serving: Mapping[str, int], wanted: Mapping[str, int]
) -> list[dict[str, Any]]:
    """The routes of one class for the groups that serve.

    Args:
        planned: the plan's routes.
        before: routes of the class in the index in force.
        serving: serving groups by configuration.
        wanted: planned groups by configuration.
    """
    up = {r["configuration"]: _share_up(r["configuration"], serving, wanted) for r in planned}
    carried = {r["configuration"]: r["shareMilli"] * up[r["configuration"]] for r in planned}
    total = sum(r["shareMilli"] for r in planned)
    missing = total - sum(carried.values())
    spare = {r["configuration"]: _spare(r["configuration"], serving, wanted) for r in before}
    left = {r["configuration"]: serving.get(r["configuration"], 0) for r in before if r["configuration"] not in up}
    takers = next((some for some in (spare, left, carried) if any(some.values())), None)
    if missing <= 0 or takers is None:
        return [dict(route) for route in planned]
    weights = _add(carried, _spread(missing, takers))
    tokens = {r["configuration"]: r["reservationTokens"] for r in (*before, *planned)}
    return [
        {"configuration": name, "shareMilli": share, "reservationTokens": tokens[name]}
        for name, share in sorted(_whole(weights, total).items())
        if share
    ]


def _share_up(name: str, serving: Mapping[str, int], wanted: Mapping[str, int]) -> float:
    return min(1.0, serving.get(name, 0) / max(1, wanted.get(name, 0)))


def _spare(name: str, serving: Mapping[str, int], wanted: Mapping[str, int]) -> int:
    """Serving groups beyond the plan."""
    return max(0, serving.get(name, 0) - wanted.get(name, 0))


def _spread(amount: float, by: Mapping[str, float]) -> dict[str, float]:
    whole = sum(by.values())
    return {name: amount * part / whole for name, part in by.items()} if whole else {}


def _add(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
    return {name: first.get(name, 0.0) + second.get(name, 0.0) for name in {**first, **second}}


def _whole(weights: Mapping[str, float], total: int) -> dict[str, int]:
    """Integers in proportion that add up to the total: floors, then one more for the largest remainders."""
    scale = total / sum(weights.values())
    exact = {name: weight * scale for name, weight in weights.items()}
    floors = {name: int(value) for name, value in exact.items()}
    by_remainder = sorted(exact, key=lambda name: (floors[name] - exact[name], name))
    for name in by_remainder[: total - sum(floors.values())]:
        floors[name] += 1
    return floors
