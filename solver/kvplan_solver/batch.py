"""The batch that a plan implies: sequences running together in one group, by Little's law.

Inputs: an instance, a result on it, and for the settled batch the configuration's speed curve.
Outputs: batches between 1 and S_k. Must not: solve or change anything.
Source: n_k = Σ_i λ_i π_ik T_ik/z_k, the concurrency of (6e); T by (1).
"""

from dataclasses import dataclass

import numpy as np

from kvplan_solver.instance import Floats, Instance
from kvplan_solver.result import Result
from kvplan_solver.service_time import service_matrix
from kvplan_solver.speed_curve import SpeedCurve


def implied_batch(instance: Instance, result: Result) -> Floats:
    """n_k = Σ_i λ_i π_ik T_ik/z_k within [1, S_k], length K; nan where z_k = 0."""
    rates = np.array([c.arrival_rate for c in instance.classes])
    in_flight = (rates[:, None] * result.routing * service_matrix(instance)).sum(axis=0)
    groups = np.array(result.groups, dtype=np.float64)
    limits = np.array([float(k.max_sequences) for k in instance.configurations])
    per_group = in_flight / np.where(groups > 0, groups, 1.0)
    return np.asarray(np.where(groups > 0, np.clip(per_group, 1.0, limits), np.nan))


def settled_batch(instance: Instance, result: Result, column: int, curve: SpeedCurve) -> float:
    """The batch that one configuration settles at under a fixed routing: the least n with n(T at n) = n.

    n(b) is linear between grid points of the curve, so the crossing is found exactly, segment by segment;
    S_k where the load outgrows every batch.
    """
    limit = float(instance.configurations[column].max_sequences)
    load = _load(instance, result, column)
    inner = curve.batch[(curve.batch > 1) & (curve.batch < limit)]
    grid = np.unique(np.concatenate([[1.0], inner, [limit]]))
    excess = np.array([_in_flight(load, curve, batch) - batch for batch in grid])
    below = np.flatnonzero(excess <= 0)
    if below.size == 0:
        return limit
    right = int(below[0])
    if right == 0:
        return 1.0
    share = excess[right - 1] / (excess[right - 1] - excess[right])
    return float(grid[right - 1] + share * (grid[right] - grid[right - 1]))


@dataclass(frozen=True)
class _Load:
    """Work per second and group that does not depend on the batch; with speeds it gives n."""

    prompt_tokens: float
    output_tokens: float
    requests: float
    measured_seconds: float


def _load(instance: Instance, result: Result, column: int) -> _Load:
    configuration = instance.configurations[column]
    parts = np.zeros(4)
    for i, c in enumerate(instance.classes):
        rate = c.arrival_rate * float(result.routing[i, column]) / result.groups[column]
        measured = configuration.service_seconds.get(c.name)
        if measured is None:
            parts += rate * np.array([c.input_tokens_mean, c.output_tokens_mean, 1.0, 0.0])
        else:
            parts[3] += rate * measured
    return _Load(*map(float, parts))


def _in_flight(load: _Load, curve: SpeedCurve, batch: float) -> float:
    speeds = curve.at(batch)
    return (
        load.prompt_tokens * speeds.prefill_seconds_per_token
        + load.output_tokens * speeds.decode_seconds_per_token
        + load.requests * speeds.overhead_seconds
        + load.measured_seconds
    )
