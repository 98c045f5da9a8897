"""Which constraints have no slack under a decision, whoever made it. Pure.

Inputs: a frozen instance and a feasible result on it. Output: binding constraints in a fixed order: the
partition's, the configurations', the classes'.
"""

from collections.abc import Iterator

import numpy as np

from kvplan_operator.plan.forecast import forecast
from kvplan_solver.budget import ceil_to_block
from kvplan_solver.instance import Instance
from kvplan_solver.newsvendor import robust_order
from kvplan_solver.packing import fits
from kvplan_solver.result import BindingConstraint, BindingKind, Result

_NEAR = 1e-3  # relative slack that counts as none: shares are in thousandths
_REJECTED = 1e-6


def binding_constraints(instance: Instance, result: Result) -> tuple[BindingConstraint, ...]:
    """Constraints without slack."""
    return (*_partition(instance, result), *_configurations(instance, result), *_classes(instance, result))


def _partition(instance: Instance, result: Result) -> Iterator[BindingConstraint]:
    gpus = [k.gpus for k in instance.configurations]
    if int(np.dot(gpus, result.groups)) + min(gpus) > instance.gpu_budget:
        yield BindingConstraint(BindingKind.GPU_BUDGET, "fleet")
        return
    more = [tuple(z + (j == k) for j, z in enumerate(result.groups)) for k in range(len(gpus))]
    if not any(fits(instance, groups) for groups in more):
        yield BindingConstraint(BindingKind.NODE_FIT, "fleet")


def _configurations(instance: Instance, result: Result) -> Iterator[BindingConstraint]:
    for group in forecast(instance, result).groups:
        if group.memory_share >= 1 - _NEAR:
            yield BindingConstraint(BindingKind.MEMORY, group.configuration)
        if group.utilisation >= (1 - _NEAR) * instance.max_utilisation:
            yield BindingConstraint(BindingKind.UTILISATION, group.configuration)


def _classes(instance: Instance, result: Result) -> Iterator[BindingConstraint]:
    for i, c in enumerate(instance.classes):
        if result.slo_excess_seconds[i] > 0:
            yield BindingConstraint(BindingKind.LATENCY, c.name)
        wanted = c.input_tokens_p95 + robust_order(c, instance.ambiguity).output_tokens
        # The best whole number of blocks may lie on either side of the exact order.
        if result.reservation_tokens[i] < ceil_to_block(wanted, instance.block_tokens) - instance.block_tokens:
            yield BindingConstraint(BindingKind.FIT, c.name)
        if c.arrival_rate > 0 and result.rejected[i] > _REJECTED:
            yield BindingConstraint(BindingKind.REJECTION, c.name)
