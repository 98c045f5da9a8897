"""The objective (6a) of a full decision (z, r, π, δ), by cause.

cost per second = Σ_i λ_i [ a_i·f_i(r_i) + Σ_k π_ik·c_gpu·τ_k·p_k·T_ik/S_k + c_slo·s_i + (1−a_i)·c_rej ]
with s_i = (Σ_k π_ik(W_k+T_ik) − a_i·D_i)⁺ from (6f) and W from (7). Optional prices of idle groups and of
switches are added to the GPU part. Evaluates only; says nothing about feasibility.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from kvplan_solver.instance import Ambiguity, ClassInput, Floats, Instance
from kvplan_solver.newsvendor import worst_case_cost
from kvplan_solver.queueing import variability, waiting_seconds
from kvplan_solver.result import CostParts
from kvplan_solver.service_time import service_matrix


@dataclass(frozen=True, eq=False)
class Coefficients:
    """The constants of one solve, as arrays: shape (I,), (K,) or (I, K)."""

    instance: Instance

    @cached_property
    def rates(self) -> Floats:
        """λ, requests per second, (I,)."""
        return np.array([c.arrival_rate for c in self.instance.classes])

    @cached_property
    def T(self) -> Floats:
        """Service time, seconds, (I, K)."""
        return service_matrix(self.instance)

    @cached_property
    def slots(self) -> Floats:
        """S, (K,)."""
        return np.array([float(k.max_sequences) for k in self.instance.configurations])

    @cached_property
    def gpus(self) -> Floats:
        """τ·p, (K,)."""
        return np.array([float(k.gpus) for k in self.instance.configurations])

    @cached_property
    def v(self) -> Floats:
        """(Ca²+Cs²)/2, (K,)."""
        return variability(self.instance)

    @cached_property
    def slo(self) -> Floats:
        """D, seconds, (I,)."""
        return np.array([c.latency_slo_seconds for c in self.instance.classes])

    @cached_property
    def latency_weight(self) -> Floats:
        """c_slo, (I,)."""
        return np.array([c.latency_weight for c in self.instance.classes])

    @cached_property
    def rejection_weight(self) -> Floats:
        """c_rej, (I,)."""
        return np.array([c.rejection_weight for c in self.instance.classes])

    @cached_property
    def gpu_cost(self) -> Floats:
        """c_gpu·τ·p·T/S per request, (I, K)."""
        return np.asarray(self.instance.gpu_second_cost * (self.gpus / self.slots)[None, :] * self.T)


def reservation_cost(instance: Instance, reservation: Floats) -> Floats:
    """f_i(r_i − Lin_i), cost per admitted request, length I."""
    return np.array(
        [
            _cost_of(c, instance.ambiguity, float(r - c.input_tokens_p95))
            for c, r in zip(instance.classes, reservation, strict=True)
        ]
    )


@lru_cache(maxsize=4096)
def _cost_of(c: ClassInput, ambiguity: Ambiguity, output_tokens: float) -> float:
    """f(η), remembered: one plan is priced many times on its way, and classes are compared by identity."""
    return float(worst_case_cost(c, ambiguity, np.array([output_tokens]))[0])


def standing_cost(instance: Instance, groups: Floats) -> float:
    """Cost per second of the partition itself: idle price of its GPUs and price of differing from now."""
    gpus = np.array([float(k.gpus) for k in instance.configurations])
    switches = float(np.abs(np.asarray(groups) - np.array(instance.running_counts)).sum())
    return float(instance.idle_gpu_second_cost * (gpus @ groups) + instance.switching_cost * switches)


def slo_excess_seconds(constants: Coefficients, groups: Floats, routing: Floats) -> Floats:
    """s_i of (6f), admission-weighted seconds, length I."""
    rates = constants.rates[:, None] * routing
    W = waiting_seconds(rates, constants.T, groups, constants.slots, constants.v)
    # Where nothing is sent an overloaded queue's infinite wait must not meet a share of 0.
    response = (routing * np.where(routing > 0, W[None, :] + constants.T, 0.0)).sum(axis=1)
    return np.asarray(np.maximum(0.0, response - routing.sum(axis=1) * constants.slo))


def evaluate(constants: Coefficients, groups: Floats, reservation: Floats, routing: Floats) -> tuple[CostParts, Floats]:
    """Cost parts and s for a decision.

    Args:
        constants: of the instance.
        groups: z, (K,).
        reservation: r, tokens, (I,).
        routing: π, (I, K).

    Returns:
        The cost by cause (per second) and s (seconds, (I,)).
    """
    return evaluate_with(constants, groups, reservation_cost(constants.instance, reservation), routing)


def evaluate_with(
    constants: Coefficients, groups: Floats, cost_per_request: Floats, routing: Floats
) -> tuple[CostParts, Floats]:
    """The same with f_i(r_i − Lin_i) already known, (I,)."""
    admitted = routing.sum(axis=1)
    s = slo_excess_seconds(constants, groups, routing)
    lam, weight = constants.rates, constants.rates * constants.latency_weight
    parts = CostParts(
        reservation=float(lam * admitted @ cost_per_request),
        gpu=float((lam[:, None] * routing * constants.gpu_cost).sum()) + standing_cost(constants.instance, groups),
        latency=float(np.where(weight > 0, weight * s, 0.0).sum()),
        rejection=float(lam * constants.rejection_weight @ np.maximum(0.0, 1.0 - admitted)),
    )
    return parts, s
