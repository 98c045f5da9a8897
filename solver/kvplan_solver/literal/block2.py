"""Block 2 of Algorithm 1: δ_ik ← 1[u_ik·π_ik/z_k > 1], the printed caching rule.

u_ik = λ_i·T_ik, so the rule asks whether more than one request of the class is in flight on a group. It
leaves out the 1+κ of (6e) (the exact rule is memory.cached_prefixes), so dropping a prefix can make a
feasible point infeasible; such a step is not taken.
"""

from dataclasses import replace

import numpy as np

from kvplan_solver.literal.decision import Decision, Problem


def cache_prefixes(problem: Problem, at: Decision) -> Decision:
    """The decision with δ by the printed rule, or unchanged if (r, π) would no longer be feasible."""
    worthwhile = (problem.in_flight(at) > 1) & (problem.prefix > 0)[:, None]
    if np.array_equal(worthwhile, at.cached):
        return at
    candidate = replace(at, cached=worthwhile)
    return candidate if problem.feasible(candidate) else at
