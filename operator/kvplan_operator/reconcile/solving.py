"""The solve of a fleet: started when it is due, killed when its inputs changed, collected when it ended.

Inputs: the ``Ground``, the ``Memory``, the solver processes. Output: a ``Solved`` in the look after its end. A solve
runs beside the looks; its end marks the fleet. Only fresh measurements are solved on.
"""

import asyncio
from collections.abc import Callable

from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.logs import Decision
from kvplan_operator.metrics import Metrics, SolveOutcome
from kvplan_operator.plan.solve_due import LastSolve, solve_due
from kvplan_operator.reconcile.ground import Ground
from kvplan_operator.reconcile.memory import Memory, Solve
from kvplan_operator.reconcile.solver_child import Solved, Solvers


class Solving:
    """The solves of one fleet."""

    def __init__(self, solvers: Solvers, metrics: Metrics, fleet: str, mark: Callable[[], None]) -> None:
        """Prepare.

        Args:
            solvers: processes shared by all fleets.
            metrics: of the operator.
            fleet: ``namespace/name``.
            mark: called when a solve ended.
        """
        self._solvers, self._metrics, self._fleet, self._mark = solvers, metrics, fleet, mark

    def collect(self, ground: Ground, memory: Memory, now: float) -> Solved | None:
        """The solve that ended since the last look, if its inputs are still today's; others are ended and dropped."""
        under_way = memory.solve
        if under_way is None:
            return None
        if (under_way.inputs_digest, under_way.inventory_digest) != (ground.inputs_digest, ground.inventory_digest):
            under_way.task.cancel()
            memory.solve = None
            self._count(SolveOutcome.CANCELLED)
            return None
        if not under_way.task.done():
            return None
        memory.solve = None
        solved = under_way.task.result()
        failed = solved.outcome is SolveOutcome.FAILED
        memory.solved = solved
        memory.last_solve = LastSolve(now, under_way.inputs_digest, under_way.inventory_digest, failed)
        if solved.plan is None:
            memory.log.decided(Decision("solve", solved.outcome.value, f"no plan: {solved.message}"))
        self._measure(solved, now)
        return solved

    def start(
        self,
        fleet: ServingFleet,
        ground: Ground,
        memory: Memory,
        now: float,
        *,
        waiting_holds: bool,
        warm: RoutingPlan | None,
        running: RoutingPlan | None,
    ) -> None:
        """Start a solve if one is due and none runs.

        Args:
            fleet: the fleet.
            ground: what to plan from.
            memory: of the fleet.
            now: seconds since the epoch.
            waiting_holds: whether the plan that waits, else the one in force, still holds.
            warm: that plan, to start from.
            running: the plan in force.
        """
        if memory.solve is not None or ground.inputs is None or ground.problem is None:
            return
        if ground.freshness.status is not ConditionStatus.TRUE:
            return
        trigger = solve_due(
            fleet,
            now,
            memory.last_solve,
            inputs_digest=ground.inputs_digest,
            inventory_digest=ground.inventory_digest,
            waiting_holds=waiting_holds,
        )
        if trigger is not None:
            limit = float(fleet.spec.solver.time_limit_seconds)
            task = asyncio.create_task(self._solvers.solve(ground.inputs, limit, warm, running))
            task.add_done_callback(self._tell)
            memory.solve = Solve(task, ground.inputs_digest, ground.inventory_digest)
            numbers = {"gpus": ground.inventory.gpus, "classes": len(ground.inputs.classes), "limitSeconds": limit}
            memory.log.decided(Decision("solve", trigger.value, f"solving: {trigger.value}", numbers=numbers))

    def _tell(self, task: "asyncio.Task[Solved]") -> None:
        if not task.cancelled():
            self._mark()

    def _measure(self, solved: Solved, now: float) -> None:
        self._count(solved.outcome)
        self._metrics.solve_seconds.observe(solved.seconds)
        self._metrics.last_solve.labels(self._fleet).set(now)
        objective = solved.plan.status.objective if solved.plan is not None else None
        if objective is not None and objective.gap_milli is not None:
            self._metrics.solve_gap.labels(self._fleet).set(objective.gap_milli / 1000)

    def _count(self, outcome: SolveOutcome) -> None:
        self._metrics.solves.labels(self._fleet, outcome.value).inc()
