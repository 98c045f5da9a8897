"""What a class can hold on a configuration at all: the optimistic side of the fit rule R̃ ≤ Q."""

import numpy as np
from numpy.typing import NDArray

from kvplan_solver.certified.curves import ReservationCurves
from kvplan_solver.cost import Coefficients
from kvplan_solver.instance import Floats, Instance
from kvplan_solver.memory import eligible
from kvplan_solver.packing import most_groups


def largest_budget(instance: Instance) -> Floats:
    """Most KV tokens one request of i could hold on k over all δ, (I, K): M, its own prefix cached or not."""
    capacity = np.array([float(k.kv_capacity_tokens) for k in instance.configurations])
    return np.tile(capacity, (len(instance.classes), 1))


def fit_deficit(instance: Instance, curves: ReservationCurves) -> Floats:
    """Tokens r* must shrink to fit into k at all, (I, K), in whole blocks."""
    over = np.maximum(0.0, curves.best[:, None] - largest_budget(instance))
    return np.asarray(np.ceil(over / instance.block_tokens - 1e-9) * instance.block_tokens)


def allowed_pairs(constants: Coefficients, curves: ReservationCurves) -> NDArray[np.bool_]:
    """Pairs that any plan may use: something arrives, the longest request fits, a prompt fits the budget."""
    instance = constants.instance
    holds_prompt = curves.smallest[:, None] <= largest_budget(instance)
    within_slots = most_groups(instance)[None, :] > 0
    arrives = (constants.rates > 0)[:, None]
    return np.asarray(eligible(instance) & holds_prompt & within_slots & arrives)
