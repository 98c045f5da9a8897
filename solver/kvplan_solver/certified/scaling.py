"""Costs in a range where the LP's absolute tolerances mean something.

The objective is homogeneous in its weights, so dividing all of them by one power of two changes no decision
and no float's mantissa. Only the scale of what the solver sees changes.
"""

import dataclasses
import math

from kvplan_solver.instance import Instance

_TYPICAL = 5_000.0
"""The paper's rejection weight: the scale at which tolerances were chosen."""
_NEAR = 4
"""Powers of two within which an instance is left as it is."""


def cost_scale(instance: Instance) -> float:
    """The power of two to divide every cost by; 1 for ordinary weights."""
    largest = max(max(c.rejection_weight, c.preemption_cost, c.waste_cost) for c in instance.classes)
    if largest <= 0:
        return 1.0
    power = round(math.log2(largest / _TYPICAL))
    return 1.0 if abs(power) <= _NEAR else 2.0**power


def scaled(instance: Instance, scale: float) -> Instance:
    """The same problem with every cost divided by ``scale``."""
    if scale == 1.0:
        return instance
    classes = tuple(
        dataclasses.replace(
            c,
            preemption_cost=c.preemption_cost / scale,
            waste_cost=c.waste_cost / scale,
            latency_weight=c.latency_weight / scale,
            rejection_weight=c.rejection_weight / scale,
        )
        for c in instance.classes
    )
    return dataclasses.replace(
        instance,
        classes=classes,
        gpu_second_cost=instance.gpu_second_cost / scale,
        idle_gpu_second_cost=instance.idle_gpu_second_cost / scale,
        switching_cost=instance.switching_cost / scale,
    )
