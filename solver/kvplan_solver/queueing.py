"""Waiting time W_k, equation (7), with S_k slots and measured burstiness (02-solver §1).

W = u·(Ca²+Cs²)·T̄/(2·S·(1−u)), u = Σ_i x_i·T_i/(z·S), T̄ = Σ x·T/Σ x. S = 1 and Ca² = 1 reproduce the print.
Then Λ·W = z·v·u²/(1−u) with v = (Ca²+Cs²)/2: jointly convex in the load and z.
"""

import numpy as np

from kvplan_solver.instance import Floats, Instance
from kvplan_solver.service_time import arrival_scv, service_scv


def variability(instance: Instance) -> Floats:
    """v_k = (Ca² + Cs²_k)/2, length K; a constant of one solve."""
    return np.asarray((arrival_scv(instance) + service_scv(instance)) / 2)


def utilisation(rates: Floats, T: Floats, groups: Floats, slots: Floats) -> Floats:
    """u_k, length K; 0 where z = 0 (the row is dropped there).

    Args:
        rates: x = λπ, requests per second, shape (I, K).
        T: seconds, shape (I, K).
        groups: z, length K.
        slots: S, length K.
    """
    room = groups * slots
    load = (rates * T).sum(axis=0)
    return np.asarray(np.where(room > 0, load / np.where(room > 0, room, 1.0), 0.0))


def waiting_seconds(rates: Floats, T: Floats, groups: Floats, slots: Floats, v: Floats) -> Floats:
    """W_k, seconds, length K; 0 where nothing arrives or z = 0, inf where u ≥ 1."""
    u = utilisation(rates, T, groups, slots)
    total = rates.sum(axis=0)
    mean_service = np.where(total > 0, (rates * T).sum(axis=0) / np.where(total > 0, total, 1.0), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        wait = np.where(u < 1, u * v * mean_service / (slots * (1 - u)), np.inf)
    return np.asarray(np.where(total > 0, wait, 0.0))
