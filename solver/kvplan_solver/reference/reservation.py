"""What a reservation costs in the worst case: LP (22) as printed, for Wasserstein1; the definition otherwise.

f(η) = min γε + Σ_n θ_n/N under (8b)–(8g). The closed form of the newsvendor module is not used.
"""

import numpy as np

from kvplan_solver.backends.cvx import minimise, nonnegative, total, value
from kvplan_solver.instance import Ambiguity, ClassInput, Floats, Instance


def reservation_costs(instance: Instance, grids: tuple[Floats, ...]) -> tuple[Floats, ...]:
    """f(r − Lin) for every reservation of every class, cost per request; ``grids`` in tokens."""
    worst = _by_linear_program if instance.ambiguity is Ambiguity.WASSERSTEIN_1 else _by_definition
    return tuple(
        worst(instance.ambiguity, c, r - c.input_tokens_p95) for c, r in zip(instance.classes, grids, strict=True)
    )


def _by_linear_program(_: Ambiguity, c: ClassInput, eta: Floats) -> Floats:
    """LP (22) for all η at once: one γ and N values θ for each."""
    xi, limit, cp, cw = c.output_lengths[None, :], c.max_output_tokens, c.preemption_cost, c.waste_cost
    count, samples = len(eta), xi.shape[1]
    eta = eta[:, None]
    gamma, theta = nonnegative(count, 1), nonnegative(count, samples)
    cost = total(c.radius * gamma) + total(theta) / samples
    minimise(
        cost,
        [
            theta >= cp * (xi - eta),  # (8b)
            theta >= cw * (eta - xi),  # (8c)
            theta >= cp * (limit - eta) - gamma @ (limit - xi),  # (8d)
            theta >= cw * eta - gamma @ xi,  # (8e)
        ],
    )
    return np.asarray(c.radius * value(gamma)[:, 0] + value(theta).mean(axis=1))


def _by_definition(ambiguity: Ambiguity, c: ClassInput, eta: Floats) -> Floats:
    """Each sample alone goes to the worse end of where it may lie."""
    xi, limit = c.output_lengths, c.max_output_tokens
    if ambiguity is Ambiguity.SCALE:
        ends = [np.clip(xi * (1 + c.radius), 0, limit)]
    else:
        ends = [np.clip(xi - c.radius, 0, limit), np.clip(xi + c.radius, 0, limit)]
    worst = [
        np.max([c.preemption_cost * (x - r).clip(0) + c.waste_cost * (r - x).clip(0) for x in ends], axis=0)
        for r in eta
    ]
    return np.asarray(np.mean(worst, axis=1))
