"""Upper bound at a fixed partition: sequential LP on the true objective (02-solver §3, step 3).

The true objective judges every step of the linearised model, and only decreases are accepted. X and r move
together, so a vertex that needs both is not a trap.
"""

import numpy as np

from kvplan_solver.certified.decision import Decision, Pricer
from kvplan_solver.certified.linear_step import Ints, LinearStep
from kvplan_solver.certified.relaxation import Relaxation
from kvplan_solver.instance import Floats

_STEPS = 12
_FIRST_RADIUS = 0.5
_LAST_RADIUS = 0.01
_WORTHWHILE = 1e-7


class Polisher:
    """Improves rates at a fixed partition, and prices one more or one less group of each configuration.

    Attributes:
        work: linear programs solved times their pairs; the counted work of the search.
    """

    def __init__(self, relaxation: Relaxation, pricer: Pricer) -> None:
        self.relaxation, self.pricer = relaxation, pricer
        self.steps = 0
        self._basis: object = None
        self.work = 0
        self._radius = _FIRST_RADIUS

    def polish(self, start: Decision, give_up_above: float = np.inf) -> Decision:
        """The best decision reached from ``start`` with the same partition.

        Args:
            start: a feasible decision.
            give_up_above: stop after two steps unless the objective is below this by then.
        """
        best, radius = start, self._radius
        self._basis = None
        for step in range(_STEPS):
            if step == 2 and best.objective > give_up_above:
                break
            candidate = self._step(best, radius)
            gain = best.objective - candidate.objective if candidate is not None else 0.0
            if candidate is not None and gain > _WORTHWHILE * max(1.0, abs(best.objective)):
                best = candidate
                self._radius = min(_FIRST_RADIUS, 2 * radius)
                continue
            radius /= 4
            if radius < _LAST_RADIUS:
                break
        return best

    def group_prices(self, at: Decision) -> Floats:
        """∂cost/∂z_k at a decision, (K,): what one more group of k would change, to first order."""
        everything = np.arange(len(self.relaxation.i_of))
        solution = self._linear_step(at, everything).solve(_FIRST_RADIUS)
        return np.zeros(len(at.groups)) if solution is None else solution.group_prices

    def _step(self, at: Decision, radius: float) -> Decision | None:
        pairs = np.flatnonzero(np.array(at.groups)[self.relaxation.k_of] > 0)
        solution = self._linear_step(at, pairs).solve(radius, self._basis)
        if solution is None:
            return None
        self._basis = solution.basis
        X = np.zeros(at.routing.shape)
        X[self.relaxation.i_of[pairs], self.relaxation.k_of[pairs]] = solution.rates.clip(0.0)
        return self.pricer.decide(at.groups, X)

    def _linear_step(self, at: Decision, pairs: Ints) -> LinearStep:
        self.steps += 1
        self.work += len(pairs)
        return LinearStep(self.relaxation, self.pricer, at, pairs)
