"""Routes for classes without traffic: their first request must find a group that can hold it.

Inputs: a frozen instance, a rounded result on it. Output: the same decision, where a class with rate 0 goes as a
whole to one running configuration: the one that serves it fastest, ties by order. A rate of 0 takes no time, no
memory and costs nothing, so no constraint and no cost changes. Must not: start a group for such a class. Pure.
"""

from dataclasses import replace

import numpy as np

from kvplan_operator.plan.pricing import price
from kvplan_solver.cost import Coefficients
from kvplan_solver.instance import Instance
from kvplan_solver.memory import budgets, effective_tokens, eligible
from kvplan_solver.result import Bools, Result


def route_idle_classes(instance: Instance, result: Result) -> Result:
    """The decision with a route for every idle class that a running group can hold."""
    idle = np.array([c.arrival_rate == 0 for c in instance.classes])
    if not idle.any():
        return result
    routing, cached = np.where(idle[:, None], 0.0, result.routing), result.cached & ~idle[:, None]
    T, held = Coefficients(instance).T, _held(instance, replace(result, cached=cached))
    for i in np.flatnonzero(idle):
        if held[i].any():
            routing[i, int(np.argmin(np.where(held[i], T[i], np.inf)))] = 1.0
    costs, excess = price(instance, result.groups, result.reservation_tokens, routing)
    return replace(result, routing=routing, cached=cached, costs=costs, slo_excess_seconds=excess)


def _held(instance: Instance, result: Result) -> Bools:
    """Where a running group has room for a request of the class, (I, K)."""
    tokens = effective_tokens(instance, np.array(result.reservation_tokens, dtype=np.float64), result.cached)
    fits = tokens <= budgets(instance, result.cached)[None, :]
    return np.asarray(eligible(instance) & fits & (np.array(result.groups) > 0)[None, :])
