"""Block 1 of Algorithm 1: alternate LP1 (routing) and LP2 (reservation) until neither lowers the cost.

As printed, and therefore only blockwise optimal: it never routes to a configuration without a group, and a
vertex where r and π would have to move together holds it.
"""

from collections.abc import Callable

from kvplan_solver.literal.decision import Decision, Problem
from kvplan_solver.literal.lp1 import propose_routing
from kvplan_solver.literal.lp2 import ReservationProgram

ROUNDS = 50
"""Alternations after which Block 1 gives up converging."""


def alternate(
    problem: Problem,
    reservations: ReservationProgram,
    start: Decision,
    report: Callable[[str, Decision], None],
    time_left: Callable[[], float | None],
) -> Decision:
    """Run Block 1.

    Args:
        problem: constants and checks.
        reservations: LP2, kept between calls.
        start: a feasible decision.
        report: told of every accepted step (name, decision).
        time_left: seconds until the safety stop; None for no stop.

    Returns:
        A feasible decision that costs at most as much as ``start``.
    """

    def routed(at: Decision) -> Decision | None:
        return propose_routing(problem, at, time_left())

    def reserved(at: Decision) -> Decision | None:
        return reservations.propose_reservation(at, time_left())

    best = start
    for _ in range(ROUNDS):
        before = best
        for step, propose in (("LP1", routed), ("LP2", reserved)):
            candidate = propose(best)
            if candidate is not None and problem.better(candidate, best):
                best = candidate
                report(step, best)
        if best is before:
            break
    return best
