"""Why the plan is as it is: binding constraints, prices, and what would serve the rejected demand."""

from collections.abc import Iterator

import numpy as np

from kvplan_solver.certified.scaling import Scaled
from kvplan_solver.certified.search import Search
from kvplan_solver.cost import Coefficients, reservation_cost
from kvplan_solver.instance import ClassInput, Floats, Instance
from kvplan_solver.memory import (
    budgets,
    concurrency,
    eligible,
    longest_request_tokens,
    memory_tokens,
    prefix_tokens,
)
from kvplan_solver.packing import fits
from kvplan_solver.queueing import utilisation
from kvplan_solver.result import BindingConstraint, BindingKind, Bools, Rejection, Result

_NEAR = 1e-3
_SHARE = 1e-6


class Explainer:
    """Reads a final result against the instance; changes nothing."""

    def __init__(self, instance: Instance, units: Scaled, search: Search) -> None:
        self.instance, self.units, self.bounder = instance, units, search.bounder
        self.curves, self.constants = search.pricer.curves, Coefficients(instance)

    def binding(self, result: Result) -> tuple[BindingConstraint, ...]:
        """Constraints without slack, in a fixed order."""
        return (
            *self._binding_partition(result),
            *self._binding_configurations(result),
            *self._binding_classes(result),
        )

    def _binding_partition(self, result: Result) -> Iterator[BindingConstraint]:
        used = int(self.constants.gpus @ np.array(result.groups))
        smallest = int(self.constants.gpus.min())
        if used + smallest > self.instance.gpu_budget:
            yield BindingConstraint(BindingKind.GPU_BUDGET, "fleet")
            return
        more = [tuple(z + (j == k) for j, z in enumerate(result.groups)) for k in range(len(result.groups))]
        if not any(fits(self.instance, groups) for groups in more):
            yield BindingConstraint(BindingKind.NODE_FIT, "fleet")

    def _binding_configurations(self, result: Result) -> Iterator[BindingConstraint]:
        z = np.array(result.groups, dtype=np.float64)
        X = result.routing * self.constants.rates[:, None]
        in_flight = concurrency(X, self.constants.T, z)
        used = memory_tokens(self.instance, in_flight, np.array(result.reservation_tokens), result.cached)
        u = utilisation(X, self.constants.T, z, self.constants.slots)
        shrunk, block = np.array(result.reservation_tokens) < self.curves.best, self.instance.block_tokens
        for k, configuration in enumerate(self.instance.configurations):
            # Reservations move in whole blocks, so memory binds once no class that gave way could have one back.
            one_block = (1 + self.instance.headroom) * in_flight[shrunk, k].max(initial=0.0) * block
            if z[k] and used[k] + one_block >= (1 - _NEAR) * configuration.kv_capacity_tokens:
                yield BindingConstraint(BindingKind.MEMORY, configuration.name)
            if z[k] and u[k] >= (1 - _NEAR) * self.instance.max_utilisation:
                yield BindingConstraint(BindingKind.UTILISATION, configuration.name)

    def _binding_classes(self, result: Result) -> Iterator[BindingConstraint]:
        for i, c in enumerate(self.instance.classes):
            if result.slo_excess_seconds[i] > 0:
                yield BindingConstraint(BindingKind.LATENCY, c.name)
            if self._limited_by_fit(result, i):
                yield BindingConstraint(BindingKind.FIT, c.name)
            if c.arrival_rate > 0 and result.rejected[i] > _SHARE:
                yield BindingConstraint(BindingKind.REJECTION, c.name)

    def _limited_by_fit(self, result: Result, i: int) -> bool:
        """Whether r_i < r* because one block more would exceed the budget Q of a group in use."""
        if result.reservation_tokens[i] >= self.curves.best[i]:
            return False
        room = budgets(self.instance, result.cached) + result.cached[i] * prefix_tokens(self.instance)[i]
        used = room[result.routing[i] > 0]
        return bool(np.any(result.reservation_tokens[i] + self.instance.block_tokens > used))

    def memory_prices(self, groups: tuple[int, ...]) -> tuple[float, ...]:
        """Cost per second saved by one more KV token in every group of k, length K."""
        linear = self.bounder.linear
        solution = self.bounder.at(groups)
        if solution is None:
            return (0.0,) * len(groups)
        dual = {k: max(0.0, -float(solution.duals[row])) for k, row in linear.memory_rows.items()}
        return tuple(dual.get(k, 0.0) * z * self.units.factor for k, z in enumerate(groups))

    def rejections(self, result: Result) -> tuple[Rejection, ...]:
        """One entry per class with rejected demand."""
        rejected = [
            i for i, c in enumerate(self.instance.classes) if c.arrival_rate > 0 and result.rejected[i] > _SHARE
        ]
        if not rejected:
            return ()
        missing = self._missing_gpus(result)
        return tuple(self._rejection(i, float(result.rejected[i]), missing) for i in rejected)

    def _rejection(self, i: int, share: float, missing: int | None) -> Rejection:
        c = self.instance.classes[i]
        if not eligible(self.instance)[i].any():
            return self._too_long(c, share, float(longest_request_tokens(self.instance)[i]))
        if not self.bounder.linear.allowed[i].any():
            why = "no group of a configuration this class may use can hold one prompt, or none fits a node"
            return Rejection(c.name, share, why, "add nodes, or a configuration with more KV capacity")
        cheapest = self._reservation_cost(i) + self._cheapest_gpu_cost(i)
        if cheapest >= c.rejection_weight:
            why = f"serving a request costs at least {cheapest:.4g}, rejecting it {c.rejection_weight:.4g}"
            return Rejection(c.name, share, why, f"raise rejectionWeight above {cheapest:.4g}")
        return self._short_of_capacity(c, share, missing)

    def _too_long(self, c: ClassInput, share: float, longest: float) -> Rejection:
        largest = max(k.kv_capacity_tokens for k in self.instance.configurations)
        why = f"its longest request is {longest:.0f} tokens, the largest group holds {largest}"
        remedy = f"add a configuration with at least {longest:.0f} KV tokens, or lower maxOutput"
        return Rejection(c.name, share, why, remedy)

    def _short_of_capacity(self, c: ClassInput, share: float, missing: int | None) -> Rejection:
        if missing is not None and missing > 0:
            remedy = f"add about {missing} GPUs"
            why = "the GPUs cannot serve all demand at a utilisation below the limit"
        else:
            why = "serving it later than its latency objective costs more than rejecting it"
            remedy = "raise latencyMilliseconds, lower latencyWeight, or add GPUs"
        return Rejection(c.name, share, why, f"{remedy}, or lower its arrival rate by {share:.1%}")

    def _reservation_cost(self, i: int) -> float:
        return float(reservation_cost(self.instance, self.curves.best)[i])

    def _cheapest_gpu_cost(self, i: int) -> float:
        allowed = self.bounder.linear.allowed[i]
        return float(self.constants.gpu_cost[i][allowed].min())

    def _missing_gpus(self, result: Result) -> int | None:
        """GPUs beyond the budget at which demand would fit: load over the best throughput per GPU."""
        allowed = self.bounder.linear.allowed
        c = self.constants
        per_gpu = np.where(allowed, c.T * (c.gpus / (self.instance.max_utilisation * c.slots))[None, :], np.inf)
        memory = self._memory_gpus(allowed, result)
        needed = np.maximum(per_gpu, memory).min(axis=1)
        served = np.isfinite(needed)
        total = float((c.rates[served] * needed[served]).sum())
        return max(0, int(np.ceil(total - self.instance.gpu_budget)))

    def _memory_gpus(self, allowed: Bools, result: Result) -> Floats:
        """GPUs per request/s that KV memory asks for, (I, K)."""
        c, instance = self.constants, self.instance
        capacity = np.array([float(k.kv_capacity_tokens) for k in instance.configurations])
        held = (1 + instance.headroom) * np.array(result.reservation_tokens, dtype=np.float64)[:, None] * c.T
        return np.asarray(np.where(allowed, held * (c.gpus / np.maximum(capacity, 1.0))[None, :], np.inf))
