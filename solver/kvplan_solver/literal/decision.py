"""What Algorithm 1 holds between two blocks, and the two questions every block asks: feasible? how costly?

Inputs: an instance. Outputs: frozen decisions (z, δ, r, γ, π) with the objective of the shared evaluator,
so that figures are comparable with the certified method. Solves nothing.
"""

from dataclasses import dataclass, replace

import numpy as np

from kvplan_solver.budget import ceil_to_block
from kvplan_solver.cost import Coefficients, evaluate
from kvplan_solver.instance import Floats, Instance
from kvplan_solver.memory import (
    budgets,
    concurrency,
    effective_tokens,
    eligible,
    memory_tokens,
    prefix_tokens,
)
from kvplan_solver.packing import fits
from kvplan_solver.queueing import utilisation
from kvplan_solver.result import Bools

TOLERANCE = 1e-7
"""Relative slack of a row: what a linear program's answer may miss it by."""


@dataclass(frozen=True, eq=False)
class Decision:
    """One point of the iteration.

    Attributes:
        groups: z, (K,).
        cached: δ, (I, K).
        reservation: r, tokens on the block grid, (I,).
        transport_price: γ of (8a), cost per token moved, (I,).
        routing: π, (I, K).
        objective: (6a), cost per second, of the point (with the exact worst case, whatever γ is).
    """

    groups: tuple[int, ...]
    cached: Bools
    reservation: Floats
    transport_price: Floats
    routing: Floats
    objective: float

    @property
    def z(self) -> Floats:
        """The groups as floats, for equations."""
        return np.array(self.groups, dtype=np.float64)


class Problem:
    """The constants of one run and the checks on a decision."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.constants = Coefficients(instance)
        self.capacity = np.array([float(k.kv_capacity_tokens) for k in instance.configurations])
        self.prefix = prefix_tokens(instance)
        self.eligible = eligible(instance)

    def start(self, groups: tuple[int, ...]) -> Decision:
        """Line 1 of Algorithm 1: δ = 0, γ = cp, r = Lin + E[ξ] (up to a block), nothing routed yet."""
        classes, block = self.instance.classes, self.instance.block_tokens
        shape = (len(classes), len(groups))
        initial = [ceil_to_block(c.input_tokens_p95 + c.output_tokens_mean, block) for c in classes]
        return self.priced(
            Decision(
                groups=groups,
                cached=np.zeros(shape, dtype=np.bool_),
                reservation=np.array(initial, dtype=np.float64),
                transport_price=np.array([c.preemption_cost for c in classes]),
                routing=np.zeros(shape),
                objective=np.inf,
            )
        )

    def priced(self, decision: Decision) -> Decision:
        """The same point with its objective (6a)."""
        parts, _ = evaluate(self.constants, decision.z, decision.reservation, decision.routing)
        return replace(decision, objective=parts.total)

    def rates(self, decision: Decision) -> Floats:
        """Requests per second x = λπ, (I, K)."""
        return np.asarray(self.constants.rates[:, None] * decision.routing)

    def in_flight(self, decision: Decision) -> Floats:
        """λπT/z, requests in flight per group, (I, K)."""
        return concurrency(self.rates(decision), self.constants.T, decision.z)

    def allowed(self, decision: Decision) -> Bools:
        """Where π may be positive: deployed (6c), longest request fits, and R̃ ≤ Q, (I, K)."""
        held = effective_tokens(self.instance, decision.reservation, decision.cached)
        room = budgets(self.instance, decision.cached)
        return np.asarray(self.eligible & (decision.z > 0)[None, :] & (held <= room[None, :]))

    def memory_left(self, cached: Bools) -> Floats:
        """M less the pinned prefixes: right side of (6e), tokens, (K,)."""
        return np.asarray(self.capacity - (cached * self.prefix[:, None]).sum(axis=0))

    def feasible(self, decision: Decision) -> bool:
        """Whether every constraint of 02-solver §1 holds, node fit included."""
        u = utilisation(self.rates(decision), self.constants.T, decision.z, self.constants.slots)
        used = memory_tokens(self.instance, self.in_flight(decision), decision.reservation, decision.cached)
        slack = 1 + TOLERANCE
        return bool(
            np.all(self.allowed(decision) | (decision.routing <= 0))
            and np.all(decision.routing.sum(axis=1) <= slack)
            and np.all(u <= self.instance.max_utilisation * slack)
            and np.all((used <= self.capacity * slack) | (decision.z <= 0))
            and fits(self.instance, decision.groups)
        )

    def better(self, candidate: Decision, current: Decision) -> bool:
        """Whether the candidate is feasible and strictly cheaper, beyond what the LPs' answers may err."""
        least = 1e-9 * max(1.0, abs(current.objective))
        return candidate.objective < current.objective - least and self.feasible(candidate)
