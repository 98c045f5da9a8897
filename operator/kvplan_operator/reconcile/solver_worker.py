"""One solve, in a process of its own: planning inputs as JSON in, plans as lines of JSON out.

Inputs: one request ``{"inputs": …, "limitSeconds": …, "warm": …, "running": …}``, where warm is an earlier plan to
start from and running the one in force.
Output: lines ``{"kind": …}``: any number of ``incumbent`` with a plan, then one of ``plan``, ``refused`` (none exists;
a reason and a message) or ``failed`` (the solver's words). The search stops itself at 80 % of the limit (04 §1);
whoever started the process ends it at 100 %. Must not run in the controller: it loads the solver library.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.problem import Problem
from kvplan_operator.plan.decision import decision_from_plan
from kvplan_operator.plan.no_plan import NoPlan
from kvplan_operator.plan.planner import make_plan, planned_incumbent, solver_options
from kvplan_operator.reconcile.solver_wire import decode_inputs
from kvplan_solver.backends import highs as _preloaded  # noqa: F401 - forks inherit what their parent has loaded
from kvplan_solver.errors import SolverError
from kvplan_solver.result import Result

SEARCH_SHARE = 0.8
"""Of the limit that the search may use; the rest is for rounding, the certificate and the way back."""
INCUMBENT_SECONDS = 0.5
"""Least CPU time between two streamed plans: each takes some of the search's, on a busy machine no larger part."""

Line = dict[str, Any]
Write = Callable[[Line], None]


def answer(request: Mapping[str, Any], write: Write) -> None:
    """Solve and write every line of the answer; whatever goes wrong is a line too."""
    try:
        write({"kind": "plan", "plan": _solve(request, write).to_wire()})
    except NoPlan as error:
        write({"kind": "refused", "reason": error.reason.value if error.reason else "", "message": str(error)})
    except SolverError as error:
        write({"kind": "failed", "message": str(error)})
    except Exception as error:  # the controller must learn of it: there is nobody else to tell
        write({"kind": "failed", "message": f"{type(error).__name__}: {error}"})


def _solve(request: Mapping[str, Any], write: Write) -> RoutingPlan:
    problem = decode_inputs(request["inputs"]).problem()
    running = _plan(request.get("running"))
    stream = _Stream(problem, running, write)
    wanted = solver_options(problem.fleet, clock=time.monotonic, on_incumbent=stream.take)
    limit_seconds = SEARCH_SHARE * float(request["limitSeconds"])
    warm = _warm_start(_plan(request.get("warm")), problem)
    return make_plan(problem, replace(wanted, deadline_seconds=limit_seconds, warm_start=warm), running).plan


def _plan(wire: Any) -> RoutingPlan | None:
    return None if wire is None else RoutingPlan.model_validate(wire)


def _warm_start(plan: RoutingPlan | None, problem: Problem) -> Result | None:
    """The decision of an earlier plan; None where there is none, or it does not fit the problem any more."""
    if plan is None:
        return None
    try:
        return decision_from_plan(plan, problem)
    except SolverError:
        return None


class _Stream:
    """Writes incumbents that are plans, better than the last one written, and not too often."""

    def __init__(self, problem: Problem, running: RoutingPlan | None, write: Write) -> None:
        self._problem, self._running, self._write = problem, running, write
        self._best = float("inf")
        self._last = float("-inf")

    def take(self, found: Result) -> None:
        """Look at one incumbent; it may be priced at speeds of a pass that did not last, so it is settled first."""
        if not any(found.groups) or time.process_time() - self._last < INCUMBENT_SECONDS:
            return  # every search begins with the plan that rejects all: better none than that
        planned = planned_incumbent(self._problem, found, 0.0, self._running)
        self._last = time.process_time()
        if planned.certificate.holds and planned.result.objective < self._best:
            self._best = planned.result.objective
            self._write({"kind": "incumbent", "plan": planned.plan.to_wire()})
