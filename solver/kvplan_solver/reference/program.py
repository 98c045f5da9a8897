"""The model in cvxpy, one line per equation, for many cells at once.

Purpose: a lower bound for every cell (W at the lower corner of the box, the smallest reservation in memory
and fit, the cheapest in the cost) and its point, which obeys every constraint of the model and so has an
exact price. The cells are independent blocks of one linear program, solved together because cvxpy's cost is
per call, not per row.
"""

from dataclasses import dataclass

import numpy as np

from kvplan_solver.backends.cvx import minimise, nonnegative, times, total, value
from kvplan_solver.instance import Floats
from kvplan_solver.reference.cells import Cells
from kvplan_solver.reference.model import Bools, Ints, Model

_DUST = 1e-8
_TOLERANCE = 1e-7


@dataclass(frozen=True, eq=False)
class Bounds:
    """Per cell: the LP's value, its point, and what that point costs exactly.

    Attributes:
        lower: no plan in the cell costs less, (n,).
        upper: exact cost of a plan, (n,).
        rates: X = λπ of that plan, requests per second, (n, I, K).
        late: classes above their SLO in it, (n, I).
        raised: whether it uses the largest reservations of the box (else the smallest), (n,).
        u: its utilisation, (n, K).
        mean: its mean service time T̄, seconds, (n, K).
    """

    lower: Floats
    upper: Floats
    rates: Floats
    late: Bools
    raised: Bools
    u: Floats
    mean: Floats


def waiting(model: Model, u: Floats, mean: Floats) -> Floats:
    """Equation (7) with S slots: W = v·u·T̄/(S(1−u)), seconds."""
    return np.asarray(model.v * u * mean / (model.S * (1 - u)))


def held(model: Model, cells: Cells, index: Ints) -> Floats:
    """R̃_ik = r_i − δ_ik·Lpre_i, tokens, (n, I, K)."""
    r = np.stack([grid[index[:, i]] for i, grid in enumerate(model.reservations)], axis=1)
    return np.asarray(r[:, :, None] - cells.cached * model.prefix[:, None])


def loss(model: Model, index: Ints) -> Floats:
    """f_i(r_i − Lin_i), cost per request, (n, I)."""
    return np.stack([losses[index[:, i]] for i, losses in enumerate(model.losses)], axis=1)


def least_loss(model: Model, cells: Cells) -> Floats:
    """The smallest f_i over each run of reservations, cost per request, (n, I)."""
    return np.array(
        [
            [losses[a : b + 1].min() for losses, a, b in zip(model.losses, first, last, strict=True)]
            for first, last in zip(cells.first, cells.last, strict=True)
        ]
    )


def request_price(model: Model) -> Floats:
    """c_gpu·τ·p·T/S − c_rej: an admitted request beside its loss, over a rejected one, (I, K)."""
    gpu = model.instance.gpu_second_cost * (model.gpus / model.S) * model.T
    return np.asarray(gpu - model.rejection_weight[:, None])


def memory_left(model: Model, cells: Cells) -> Floats:
    """M_k − Σ_i δ_ik·Lpre_i, tokens, (n, K)."""
    return np.asarray(model.M - (cells.cached * model.prefix[:, None]).sum(axis=1))


def allowed(model: Model, cells: Cells, index: Ints) -> Bools:
    """Where X may be positive: a group (6c), the longest request fits, R̃ ≤ Q, (n, I, K)."""
    fits = held(model, cells, index) <= memory_left(model, cells)[:, None, :]
    return np.asarray((cells.z > 0)[:, None, :] & model.eligible & fits)


def in_flight(model: Model, cells: Cells, rates: Floats) -> Floats:
    """Little's law: X·T/z, (n, I, K); 0 without groups."""
    return np.asarray(rates * model.T / np.maximum(cells.z, 1.0)[:, None, :])


def standing(model: Model, cells: Cells) -> Floats:
    """Price of the partition itself: idle GPUs and switches, (n,)."""
    instance = model.instance
    running = np.array([sum(g.configuration == k.name for g in instance.running) for k in instance.configurations])
    idle = instance.idle_gpu_second_cost * (cells.z @ model.gpus)
    return np.asarray(idle + instance.switching_cost * np.abs(cells.z - running).sum(axis=1))


def solve_cells(model: Model, cells: Cells) -> Bounds:
    """Bound every cell from below and price its point."""
    n, (classes, configurations) = len(cells), model.T.shape
    open_pairs = allowed(model, cells, cells.first).astype(np.float64)
    W = waiting(model, cells.u[0], cells.mean[0])[:, None, :]
    left = memory_left(model, cells)
    lam, T, D, z = model.rates[:, None], model.T, model.slo[:, None], np.maximum(cells.z, 1.0)[:, None, :]
    held_share = held(model, cells, cells.first) / np.maximum(left, 1.0)[:, None, :]
    price = lam * (least_loss(model, cells)[:, :, None] + request_price(model))
    scale = max(1.0, float(model.rates @ model.rejection_weight))
    weight = np.tile(model.rates * model.latency_weight, (n, 1))
    row = np.ones((n, configurations))

    pi, s = nonnegative(n, classes, configurations), nonnegative(n, classes)
    cost = (total(times(price, pi)) + total(times(weight, s))) / scale  # (6a), less all rejected
    constraints = [
        pi <= open_pairs,  # (6b), (6c), fit
        total(pi, axis=2) <= np.ones((n, classes)),  # (6d)
        total(times((1 + model.instance.headroom) * lam * T / z * held_share, pi), axis=1) <= row,  # (6e)
        s >= total(times(W + T - D, pi), axis=2),  # (6f)
        total(times(lam * T / (z * model.S), pi), axis=1) <= cells.u[1],
        total(times(lam * (T - cells.mean[1][:, None, :]), pi), axis=1) <= 0 * row,
    ]
    minimise(cost, constraints)
    routing = np.where((open_pairs > 0) & (value(pi) > _DUST), value(pi), 0.0)
    late = (routing * (W + T - D)).sum(axis=2).clip(0.0)
    fixed = standing(model, cells) + model.rates @ model.rejection_weight
    lower = (price * routing).sum(axis=(1, 2)) + late @ (model.rates * model.latency_weight) + fixed
    return _with_exact_price(model, cells, lam * routing, lower, fixed)


def _with_exact_price(model: Model, cells: Cells, x: Floats, lower: Floats, fixed: Floats) -> Bounds:
    """(6a) of the LP's point with the true W and one reservation per class."""
    load, arriving = (x * model.T).sum(axis=1), x.sum(axis=1)
    u = load / np.maximum(cells.z * model.S, 1.0)
    mean = load / np.where(arriving > 0, arriving, 1.0)
    W = waiting(model, u, mean)
    late = (x * (W[:, None, :] + model.T - model.slo[None, :, None])).sum(axis=2).clip(0.0)
    raised = _holds(model, cells, x, cells.last)
    f = loss(model, np.where(raised[:, None], cells.last, cells.first))
    price = f[:, :, None] + request_price(model)
    upper = (price * x).sum(axis=(1, 2)) + late @ model.latency_weight + fixed
    return Bounds(lower, upper, x, late > 0, raised, u, mean)


def _holds(model: Model, cells: Cells, x: Floats, index: Ints) -> Bools:
    """Whether memory (6e) and fit hold with these reservations, (n,)."""
    padding, left = 1 + model.instance.headroom, memory_left(model, cells)
    used = padding * (in_flight(model, cells, x) * held(model, cells, index)).sum(axis=1)
    return np.asarray(
        np.all(used <= left * (1 + _TOLERANCE), axis=1) & np.all(allowed(model, cells, index) | (x <= 0), axis=(1, 2))
    )
