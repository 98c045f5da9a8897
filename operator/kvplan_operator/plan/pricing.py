"""The cost of any decision, overloaded ones included: where a queue never empties, waiting costs infinity. Pure."""

from collections.abc import Sequence

import numpy as np

from kvplan_solver.cost import Coefficients, evaluate
from kvplan_solver.instance import Floats, Instance
from kvplan_solver.result import CostParts


def price(
    instance: Instance, groups: Sequence[int], reservation: Sequence[int], routing: Floats
) -> tuple[CostParts, tuple[float, ...]]:
    """Cost parts and latency excess of a decision (6a), (6f).

    Args:
        instance: frozen speeds.
        groups: z, length K.
        reservation: r, tokens, length I.
        routing: π, shape (I, K).

    Returns:
        Cost by cause, per second, and s, seconds, length I.
    """
    z, r = np.array(groups, dtype=np.float64), np.array(reservation, dtype=np.float64)
    costs, excess = evaluate(Coefficients(instance), z, r, routing)
    return costs, tuple(float(s) for s in excess)
