"""Service time T_ik, equation (1), and the variability of service Cs²_k used in (7).

Printed: T_ik = α·Lin_i·p_k/C_k + β·E[ξ_i]/B_k + N_L·τ_k·t_ar. A configuration stores the three terms ready
for use (seconds per prompt token, seconds per output token, seconds per request); a measured T beats them.
"""

import numpy as np

from kvplan_solver.instance import ClassInput, ConfigurationInput, Floats, Instance


def service_seconds(c: ClassInput, k: ConfigurationInput) -> float:
    """T_ik, seconds, at the mean prompt and output length."""
    measured = k.service_seconds.get(c.name)
    if measured is not None:
        return measured
    return _at_length(c, k, c.output_tokens_mean)


def _at_length(c: ClassInput, k: ConfigurationInput, output_tokens: float) -> float:
    prefill = k.prefill_seconds_per_token * c.input_tokens_mean
    return prefill + k.decode_seconds_per_token * output_tokens + k.overhead_seconds


def service_matrix(instance: Instance) -> Floats:
    """T, seconds, shape (I, K)."""
    return np.array([[service_seconds(c, k) for k in instance.configurations] for c in instance.classes])


def service_scv(instance: Instance) -> Floats:
    """Cs²_k, length K: squared coefficient of variation of the service time over the rate-weighted mix.

    The variance of ξ enters through β/B; a measured T scales it with the mean. The mix is all offered
    traffic, so the value is a constant of one solve (the paper: "held fixed").
    """
    rates = np.array([c.arrival_rate for c in instance.classes])
    weights = rates / rates.sum() if rates.sum() > 0 else np.full(len(rates), 1 / len(rates))
    T = service_matrix(instance)
    spread = np.array([float(c.output_lengths.std()) for c in instance.classes])
    decode = np.array([k.decode_seconds_per_token for k in instance.configurations])
    second = T**2 + np.outer(spread, decode) ** 2
    mean = weights @ T
    known = np.where(mean > 0, mean, 1.0)
    return np.asarray(np.where(mean > 0, (weights @ second) / known**2 - 1, 0.0))


def arrival_scv(instance: Instance) -> float:
    """Ca², rate-weighted over the classes; 1 (Poisson) when nothing arrives."""
    rates = np.array([c.arrival_rate for c in instance.classes])
    if rates.sum() <= 0:
        return 1.0
    return float(rates @ np.array([c.arrival_scv for c in instance.classes]) / rates.sum())
