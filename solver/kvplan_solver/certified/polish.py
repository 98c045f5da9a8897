"""Upper bound at a fixed partition: sequential LP on the true objective (02-solver §3, step 3).

The true objective judges every step of the linearised model, and only decreases are accepted. X and r move
together, so a vertex that needs both is not a trap.
"""

from collections.abc import Callable, Iterator

import numpy as np

from kvplan_solver.certified.decision import Decision, Pricer
from kvplan_solver.certified.linear_step import Ints, LinearStep
from kvplan_solver.certified.relaxation import Relaxation
from kvplan_solver.instance import Floats

_STEPS = 24
_FIRST_RADIUS = 0.5
_LAST_RADIUS = 0.01
_FINE_RADIUS = 1e-5
_BLOCK_ROUNDS = 20
_MOST_MOVED = 8
_SHRINKS = 8
_WORTHWHILE = 1e-7


class Polisher:
    """Improves rates at a fixed partition, and prices one more or one less group of each configuration.

    Attributes:
        work: linear programs solved times their pairs; the counted work of the search.
    """

    def __init__(self, relaxation: Relaxation, pricer: Pricer, out_of_time: Callable[[], bool]) -> None:
        self.relaxation, self.pricer, self.out_of_time = relaxation, pricer, out_of_time
        self.steps = 0
        self._basis: object = None
        self.work = 0
        self._radius = _FIRST_RADIUS

    def polish(
        self,
        start: Decision,
        give_up_above: float = np.inf,
        *,
        last_radius: float = _LAST_RADIUS,
        keep: bool = False,
    ) -> Decision:
        """The best decision reached from ``start`` with the same partition.

        Args:
            start: a feasible decision.
            give_up_above: stop after two steps unless the objective is below this by then.
            last_radius: trust region at which to stop, as a share of each class's rate.
            keep: leave r as it is and move only X.
        """
        best, radius = start, self._radius
        self._basis = None
        for step in range(_STEPS):
            if (step == 2 and best.objective > give_up_above) or self.out_of_time():
                break
            candidate = self._step(best, radius, keep=keep)
            if candidate is not None and _better(candidate, best):
                best = candidate
                self._radius = min(_FIRST_RADIUS, 2 * radius)
                continue
            radius /= 4
            if radius < last_radius:
                break
        return best

    def finish(self, start: Decision) -> Decision:
        """Squeeze the last out of a decision: a fine trust region, then r block by block where memory binds."""
        best = self.polish(start, last_radius=_FINE_RADIUS)
        for _ in range(0 if self.out_of_time() else _BLOCK_ROUNDS):
            moved = next((d for d in self._block_moves(best) if _better(d, best)), None)
            if moved is None:
                return best
            best = moved
        return best

    def _block_moves(self, at: Decision) -> Iterator[Decision]:
        """Decisions with one class's r a block up or down, or a block handed from one class to another."""
        used = np.flatnonzero(at.routing.sum(axis=1) > 0)
        if np.all(at.reservation[used] >= self.pricer.curves.best[used]):
            return
        yield from self._refilled(at, at.reservation)
        block = float(self.pricer.instance.block_tokens)
        steps = [(int(i), sign * block) for i in used[:_MOST_MOVED] for sign in (1, -1)]
        pairs = [(up, down) for up in steps for down in steps if up[1] > 0 > down[1] and up[0] != down[0]]
        for moves in [*((step,) for step in steps), *pairs]:
            reservation = at.reservation.copy()
            for i, by in moves:
                reservation[i] += by
            within = (reservation >= self.pricer.curves.smallest) & (reservation <= self.pricer.curves.best)
            if np.all(within):
                yield from self._refilled(at, reservation)

    def _refilled(self, at: Decision, reservation: Floats) -> Iterator[Decision]:
        """The rates re-optimised for a given r; nothing if no share of them fits."""
        rates = at.routing * self.pricer.constants.rates[:, None]
        for _ in range(_SHRINKS):
            decision = self.pricer.decide(at.groups, rates, reservation)
            if decision is not None:
                yield self.polish(decision, keep=True)
                return
            rates = rates * 0.9

    def group_prices(self, at: Decision) -> Floats:
        """∂cost/∂z_k at a decision, (K,): what one more group of k would change, to first order."""
        everything = np.arange(len(self.relaxation.i_of))
        solution = self._linear_step(at, everything).solve(_FIRST_RADIUS)
        return np.zeros(len(at.groups)) if solution is None else solution.group_prices

    def _step(self, at: Decision, radius: float, *, keep: bool) -> Decision | None:
        pairs = np.flatnonzero(np.array(at.groups)[self.relaxation.k_of] > 0)
        solution = self._linear_step(at, pairs, keep=keep).solve(radius, self._basis)
        if solution is None:
            return None
        self._basis = solution.basis
        X = np.zeros(at.routing.shape)
        X[self.relaxation.i_of[pairs], self.relaxation.k_of[pairs]] = solution.rates.clip(0.0)
        return self.pricer.decide(at.groups, X, at.reservation if keep else None)

    def _linear_step(self, at: Decision, pairs: Ints, *, keep: bool = False) -> LinearStep:
        self.steps += 1
        self.work += len(pairs)
        return LinearStep(self.relaxation, self.pricer, at, pairs, keep_reservation=keep)


def _better(candidate: Decision, best: Decision) -> bool:
    return best.objective - candidate.objective > _WORTHWHILE * abs(best.objective)
