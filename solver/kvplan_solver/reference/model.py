"""The constants of the model, worked out afresh from an instance: nothing here is shared with the methods.

Purpose: an independent reading of 02-solver §1 and of equations (1)–(7), so that a slip in the shared modules
(cost, memory, queueing, newsvendor) shows as a difference. Inputs: an instance. Outputs: arrays over
classes (I), configurations (K) and the grid of reservations.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvplan_solver.instance import Floats, Instance
from kvplan_solver.reference.reservation import reservation_costs

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Model:
    """Constants, named as in the equations.

    Attributes:
        rates: λ, requests per second, (I,).
        T: seconds, (I, K), equation (1).
        v: (Ca² + Cs²)/2, (K,).
        S: sequences a group runs at once, (K,).
        M: KV tokens of a group, (K,).
        gpus: τ·p, (K,).
        prefix: floor(Lpre/B)·B, tokens, (I,).
        eligible: whether maxPrompt + maxOutput ≤ M, (I, K).
        reservations: per class, every r on the block grid from ceil(Lin) up to the cheapest, tokens.
        losses: per class, f(r − Lin) of each, cost per request.
        slo: D, seconds, (I,).
        latency_weight: c_slo, (I,).
        rejection_weight: c_rej, (I,).
    """

    instance: Instance
    rates: Floats
    T: Floats
    v: Floats
    S: Floats
    M: Floats
    gpus: Floats
    prefix: Floats
    eligible: Bools
    reservations: tuple[Floats, ...]
    losses: tuple[Floats, ...]
    slo: Floats
    latency_weight: Floats
    rejection_weight: Floats


def build_model(instance: Instance) -> Model:
    """All constants of one instance."""
    classes, configurations = instance.classes, instance.configurations
    T = _service_seconds(instance)
    grids = _reservation_grids(instance)
    losses = reservation_costs(instance, grids)
    # More than the cheapest reservation costs more and holds more memory: it is never of use.
    useful = [int(np.argmin(loss)) + 1 for loss in losses]
    longest = np.array([c.input_tokens_max + c.max_output_tokens for c in classes])
    M = np.array([float(k.kv_capacity_tokens) for k in configurations])
    block = instance.block_tokens
    return Model(
        instance=instance,
        rates=np.array([c.arrival_rate for c in classes]),
        T=T,
        v=_variability(instance, T),
        S=np.array([float(k.max_sequences) for k in configurations]),
        M=M,
        gpus=np.array([float(k.tensor_parallel * k.pipeline_parallel) for k in configurations]),
        prefix=np.array([float(c.shared_prefix_tokens // block * block) for c in classes]),
        eligible=longest[:, None] <= M[None, :],
        reservations=tuple(r[:n] for r, n in zip(grids, useful, strict=True)),
        losses=tuple(loss[:n] for loss, n in zip(losses, useful, strict=True)),
        slo=np.array([c.latency_slo_seconds for c in classes]),
        latency_weight=np.array([c.latency_weight for c in classes]),
        rejection_weight=np.array([c.rejection_weight for c in classes]),
    )


def _service_seconds(instance: Instance) -> Floats:
    """Equation (1): prefill and bubble, decode, communication; or what was measured."""
    return np.array(
        [
            [
                k.service_seconds.get(
                    c.name,
                    k.prefill_seconds_per_token * c.input_tokens_mean
                    + k.decode_seconds_per_token * float(np.mean(c.output_lengths))
                    + k.overhead_seconds,
                )
                for k in instance.configurations
            ]
            for c in instance.classes
        ]
    )


def _variability(instance: Instance, T: Floats) -> Floats:
    """(Ca² + Cs²_k)/2 over the mix of all that is offered, each class weighted by its rate."""
    rates = [c.arrival_rate for c in instance.classes]
    busy = sum(rates) > 0
    share = np.array(rates) / sum(rates) if busy else np.full(len(rates), 1 / len(rates))
    ca2 = float(share @ np.array([c.arrival_scv for c in instance.classes])) if busy else 1.0
    decode = np.array([k.decode_seconds_per_token for k in instance.configurations])
    variance = np.array([float(np.var(c.output_lengths)) for c in instance.classes])
    mean, second = share @ T, share @ (T**2 + variance[:, None] * decode[None, :] ** 2)
    cs2 = np.where(mean > 0, second / np.where(mean > 0, mean, 1.0) ** 2 - 1, 0.0)
    return np.asarray((ca2 + cs2) / 2)


def _reservation_grids(instance: Instance) -> tuple[Floats, ...]:
    """Multiples of the KV block from Lin up to Lin + Lmax, both rounded up, tokens."""
    block = instance.block_tokens
    grids = []
    for c in instance.classes:
        first = -(-c.input_tokens_p95 // block)
        last = -(-(c.input_tokens_p95 + c.max_output_tokens) // block)
        grids.append(block * np.arange(first, last + 1, dtype=np.float64))
    return tuple(grids)
