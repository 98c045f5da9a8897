"""The same problem in units in which the LP's absolute tolerances mean something.

Three changes, none of which changes a decision the certificate would tell apart:

- costs are divided by one power of two, so that serving a request costs hundreds;
- time is measured in units of a power of two seconds, so that tens of requests arrive per unit;
- a rejection weight is capped at ``_CAP`` times the dearest service. A lower weight gives a lower bound that is
  still valid. Where demand of a capped class is rejected all the same, the solve is repeated without the cap:
  then the weights of rejection are what the objective consists of, and their size does no harm.

Powers of two leave every mantissa as it is; ordinary instances are left as they are altogether.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from kvplan_solver.instance import ClassInput, ConfigurationInput, Floats, Instance
from kvplan_solver.newsvendor import robust_order
from kvplan_solver.service_time import service_matrix

_TYPICAL_COST, _NEAR_COST = 512.0, 8
_TYPICAL_RATE, _NEAR_RATE = 32.0, 5
_CAP = 1e5
_LARGEST = 1e8


@dataclass(frozen=True, eq=False)
class Scaled:
    """An instance in other units.

    Attributes:
        instance: what the solver sees.
        factor: cost per second of the original per unit of the scaled objective.
        capped: classes whose rejection weight was lowered, (I,).
    """

    instance: Instance
    factor: float
    capped: Floats


def scale(instance: Instance, *, cap: bool) -> Scaled:
    """Choose units for an instance.

    Args:
        instance: the problem as given.
        cap: whether rejection weights may be capped.
    """
    dearest = _dearest_service(instance)
    limit = _CAP * dearest if cap and dearest > 0 else math.inf
    weights = [min(c.rejection_weight, limit) for c in instance.classes]
    cost = _power(dearest / _TYPICAL_COST, _NEAR_COST)
    total = sum(c.arrival_rate for c in instance.classes)
    unit = _time_unit(instance, _power(_TYPICAL_RATE / total, _NEAR_RATE) if total > 0 else 1.0, cost)
    lowered = np.array([float(w < c.rejection_weight) for c, w in zip(instance.classes, weights, strict=True)])
    if cost == unit == 1.0 and not lowered.any():
        return Scaled(instance, 1.0, lowered)
    classes = tuple(_class(c, weight, cost, unit) for c, weight in zip(instance.classes, weights, strict=True))
    rescaled = replace(
        instance,
        classes=classes,
        configurations=tuple(_configuration(k, unit) for k in instance.configurations),
        gpu_second_cost=instance.gpu_second_cost * unit / cost,
        idle_gpu_second_cost=instance.idle_gpu_second_cost * unit / cost,
        switching_cost=instance.switching_cost * unit / cost,
    )
    return Scaled(rescaled, cost / unit, lowered)


def _power(ratio: float, near: int) -> float:
    """The power of two nearest to a ratio; 1 if it is near, or the ratio is no positive number."""
    if not 0 < ratio < math.inf:
        return 1.0
    power = round(math.log2(ratio))
    return 1.0 if abs(power) <= near else 2.0**power


def _dearest_service(instance: Instance) -> float:
    """Most that serving one request of any arriving class costs where it costs least, waiting aside."""
    T = service_matrix(instance)
    per_gpu = np.array([instance.gpu_second_cost * k.gpus / k.max_sequences for k in instance.configurations])
    costs = [
        robust_order(c, instance.ambiguity).cost + float((T[i] * (per_gpu + c.latency_weight)).min())
        for i, c in enumerate(instance.classes)
        if c.arrival_rate > 0
    ]
    return max(costs, default=0.0)


def _time_unit(instance: Instance, wanted: float, cost: float) -> float:
    """The wanted unit, made smaller until no price per unit of time is out of range."""
    prices = [c.latency_weight for c in instance.classes]
    prices += [instance.gpu_second_cost, instance.idle_gpu_second_cost, instance.switching_cost]
    rates = [c.arrival_rate for c in instance.classes]
    unit = wanted
    while unit > 1 and (max(prices) * unit / cost > _LARGEST or max(rates) * unit > _LARGEST):
        unit /= 2
    return unit


def _class(c: ClassInput, rejection_weight: float, cost: float, unit: float) -> ClassInput:
    return replace(
        c,
        arrival_rate=c.arrival_rate * unit,
        latency_slo_seconds=min(c.latency_slo_seconds / unit, _LARGEST),
        preemption_cost=c.preemption_cost / cost,
        waste_cost=c.waste_cost / cost,
        latency_weight=c.latency_weight * unit / cost,
        rejection_weight=rejection_weight / cost,
    )


def _configuration(k: ConfigurationInput, unit: float) -> ConfigurationInput:
    return replace(
        k,
        prefill_seconds_per_token=k.prefill_seconds_per_token / unit,
        decode_seconds_per_token=k.decode_seconds_per_token / unit,
        overhead_seconds=k.overhead_seconds / unit,
        service_seconds={name: seconds / unit for name, seconds in k.service_seconds.items()},
    )
