"""Checks any result against every constraint of the model and against its own bound (02-solver §3).

Shares the model's equations (memory, queueing, cost, budget, packing rows) with the methods but none of
their search: whoever produced the result (a method, a person, a file from git) is not trusted. Used by the
tests, by the gate and by ``kvplan verify``. Pure.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from kvplan_solver.budget import ceil_to_block
from kvplan_solver.cost import Coefficients, evaluate
from kvplan_solver.instance import Floats, GroupPlacement, Instance
from kvplan_solver.memory import (
    budgets,
    concurrency,
    effective_tokens,
    eligible,
    memory_tokens,
    prefix_tokens,
)
from kvplan_solver.queueing import utilisation
from kvplan_solver.result import CostParts, Result, Status


class Check(StrEnum):
    """What can be wrong with a result; the equation or rule in brackets."""

    SHAPE = "Shape"
    """Array lengths follow the instance, every number is finite."""
    GROUPS = "Groups"
    """z is a vector of integers of 0 or more."""
    GPU_BUDGET = "GpuBudget"
    """(6b) and the floor and cap on GPUs."""
    PLACEMENT_COUNT = "PlacementCount"
    """As many placements as groups, each with one node per stage."""
    PLACEMENT_NODE = "PlacementNode"
    """Placements name existing nodes of the right GPU product."""
    PLACEMENT_STAGE = "PlacementStage"
    """A group that may not span nodes lies on one."""
    NODE_FIT = "NodeFit"
    """No node hosts more GPUs than it has free."""
    ROUTING_RANGE = "RoutingRange"
    """Every share lies in [0, 1]."""
    ROUTING_SUM = "RoutingSum"
    """(6d) shares and rejection of a class add up to 1."""
    ROUTING_TO_NOTHING = "RoutingToNothing"
    """(6c) no share goes to a configuration without groups."""
    MAX_LENGTH = "MaxLength"
    """The longest request of a class fits into every group it may be sent to."""
    RESERVATION_BLOCK = "ReservationBlock"
    """r is a whole number of KV blocks."""
    RESERVATION_RANGE = "ReservationRange"
    """r lies in [Lin, Lin + Lmax], in whole blocks."""
    CACHING = "Caching"
    """δ only where there is a whole block to share and a group to hold it."""
    FIT = "Fit"
    """R̃ ≤ Q for every class and configuration in use."""
    MEMORY = "Memory"
    """(6e)."""
    UTILISATION = "Utilisation"
    """u ≤ u_max."""
    SLO_EXCESS = "SloExcess"
    """s as stated is what (6f) and (7) give."""
    COSTS = "Costs"
    """The cost parts as stated are what (6a) gives."""
    LOWER_BOUND = "LowerBound"
    """The bound is not above the objective, nor above the cost of rejecting everything.

    A bound that is wrong but below both cannot be told from a right one without solving again.
    """
    STATUS = "Status"
    """There is a plan at all; Optimal only with a finite bound and a gap within the target."""


@dataclass(frozen=True)
class Violation:
    """One broken rule."""

    check: Check
    subject: str
    message: str


@dataclass(frozen=True)
class Certificate:
    """The outcome: no violations means the result is what it says it is."""

    violations: tuple[Violation, ...]

    @property
    def holds(self) -> bool:
        """Whether every check passed."""
        return not self.violations


def certify(
    instance: Instance, result: Result, *, tolerance: float = 1e-6, gap_target: float | None = None, drift: float = 0.0
) -> Certificate:
    """Check a result.

    Args:
        instance: the problem it claims to solve.
        result: any result, trusted in nothing.
        tolerance: relative slack of every comparison (rounding of shares needs more than a solver does).
        gap_target: if given, a result with status Optimal must have at most this gap.
        drift: share of the KV memory by which (6e) may be exceeded, for a result that was made before the rates were
            measured anew; never more than the headroom κ, which is kept for that.

    Returns:
        A certificate with every violation found. Broken shapes end the check early.
    """
    if result.status in (Status.INFEASIBLE, Status.ERROR):
        return Certificate((Violation(Check.STATUS, "fleet", f"status is {result.status}: there is no plan to check"),))
    slack = max(tolerance, min(drift, instance.headroom))
    checker = _Checker(instance, result, tolerance, gap_target, slack)
    shape = tuple(checker.shape())
    if shape:
        return Certificate(shape)
    return Certificate(tuple(violation for part in checker.parts() for violation in part()))


class _Checker:
    """One check run; every method yields the violations of one kind."""

    def __init__(
        self, instance: Instance, result: Result, tolerance: float, gap_target: float | None, memory_slack: float
    ) -> None:
        self.instance, self.result = instance, result
        self.tolerance, self.gap_target, self.memory_slack = tolerance, gap_target, memory_slack
        self.constants = Coefficients(instance)
        self.class_names = [c.name for c in instance.classes]
        self.configuration_names = [k.name for k in instance.configurations]

    def parts(self) -> tuple[Callable[[], Iterator[Violation]], ...]:
        """All checks but the shape, in reading order."""
        return (
            self.groups, self.gpu_budget, self.placements, self.node_fit, self.routing, self.max_length,
            self.reservation, self.caching, self.fit, self.memory, self.utilisation, self.slo_excess,
            self.costs, self.lower_bound, self.status,
        )  # fmt: skip

    def shape(self) -> Iterator[Violation]:
        """Lengths and finiteness."""
        r, (classes, configurations) = self.result, (len(self.class_names), len(self.configuration_names))
        expected = {
            "groups": (np.shape(r.groups), (configurations,)),
            "reservation_tokens": (np.shape(r.reservation_tokens), (classes,)),
            "routing": (np.shape(r.routing), (classes, configurations)),
            "cached": (np.shape(r.cached), (classes, configurations)),
            "slo_excess_seconds": (np.shape(r.slo_excess_seconds), (classes,)),
        }
        if not isinstance(r.routing, np.ndarray) or getattr(r.cached, "dtype", None) != np.bool_:
            yield Violation(Check.SHAPE, "routing, cached", "expected an array of numbers and one of truth values")
            return
        for name, (shape, wanted) in expected.items():
            if shape != wanted:
                yield Violation(Check.SHAPE, name, f"shape is {shape}, expected {wanted}")
        parts = (r.costs.reservation, r.costs.gpu, r.costs.latency, r.costs.rejection)
        numbers = {"groups": r.groups, "reservation_tokens": r.reservation_tokens, "routing": r.routing}
        numbers |= {"slo_excess_seconds": r.slo_excess_seconds, "costs": parts}
        for name, values in numbers.items():
            if not _all_finite(values):
                yield Violation(Check.SHAPE, name, "holds a number that is not finite")

    @property
    def z(self) -> Floats:
        """Groups per configuration, (K,)."""
        return np.array(self.result.groups, dtype=np.float64)

    @property
    def in_flight(self) -> Floats:
        """Concurrency by Little's law, (I, K)."""
        rates = self.result.routing * self.constants.rates[:, None]
        return concurrency(rates, self.constants.T, self.z)

    def groups(self) -> Iterator[Violation]:
        """Integers of 0 or more."""
        for name, z in zip(self.configuration_names, self.result.groups, strict=True):
            if z < 0 or int(z) != z:
                yield Violation(Check.GROUPS, name, f"groups is {z}, expected an integer of 0 or more")

    def gpu_budget(self) -> Iterator[Violation]:
        """(6b)."""
        used = float(self.constants.gpus @ self.z)
        if used > self.instance.gpu_budget:
            yield Violation(Check.GPU_BUDGET, "fleet", f"{used:g} GPUs used, {self.instance.gpu_budget} allowed")
        if used < self.instance.min_gpus:
            yield Violation(Check.GPU_BUDGET, "fleet", f"{used:g} GPUs used, {self.instance.min_gpus} or more wanted")

    def placements(self) -> Iterator[Violation]:
        """Counts, nodes and stages."""
        for name, z in zip(self.configuration_names, self.result.groups, strict=True):
            placed = sum(p.configuration == name for p in self.result.placements)
            if placed != z:
                yield Violation(Check.PLACEMENT_COUNT, name, f"{placed} placements for {z} groups")
        for placement in self.result.placements:
            yield from self._placement(placement)

    def _placement(self, placement: GroupPlacement) -> Iterator[Violation]:
        known = {k.name: k for k in self.instance.configurations}
        configuration = known.get(placement.configuration)
        if configuration is None:
            yield Violation(Check.PLACEMENT_COUNT, placement.configuration, "no such configuration")
            return
        if len(placement.stages) != configuration.pipeline_parallel:
            message = f"{len(placement.stages)} stages placed, {configuration.pipeline_parallel} wanted"
            yield Violation(Check.PLACEMENT_COUNT, placement.configuration, message)
        if not configuration.spans_nodes and len(set(placement.stages)) > 1:
            message = f"spans {', '.join(sorted(set(placement.stages)))} but may not span nodes"
            yield Violation(Check.PLACEMENT_STAGE, placement.configuration, message)
        products = {n.name: n.gpu_product for n in self.instance.nodes}
        for node in sorted(set(placement.stages)):
            if node not in products:
                yield Violation(Check.PLACEMENT_NODE, node, f"{placement.configuration} is placed on an unknown node")
            elif configuration.gpu_product not in ("", products[node]):
                message = f"has {products[node]}, {placement.configuration} needs {configuration.gpu_product}"
                yield Violation(Check.PLACEMENT_NODE, node, message)

    def node_fit(self) -> Iterator[Violation]:
        """GPUs per node."""
        width = {k.name: k.tensor_parallel for k in self.instance.configurations}
        for node in self.instance.nodes:
            used = sum(width.get(p.configuration, 0) * p.stages.count(node.name) for p in self.result.placements)
            if used > node.free_gpus:
                yield Violation(Check.NODE_FIT, node.name, f"{used} GPUs placed, {node.free_gpus} free")

    def routing(self) -> Iterator[Violation]:
        """(6c), (6d)."""
        for i, name in enumerate(self.class_names):
            row = self.result.routing[i]
            if np.any(row < 0) or np.any(row > 1 + self.tolerance):
                yield Violation(Check.ROUTING_RANGE, name, f"shares {row.tolist()} leave [0, 1]")
            if row.sum() > 1 + self.tolerance:
                yield Violation(Check.ROUTING_SUM, name, f"shares add up to {row.sum():.9g}, more than 1")
            for k in np.flatnonzero((row > 0) & (self.z <= 0)):
                message = f"share {row[k]:.6g} goes to {self.configuration_names[k]}, which has no group"
                yield Violation(Check.ROUTING_TO_NOTHING, name, message)

    def _used_pairs(self) -> Iterator[tuple[int, int, str]]:
        for i, k in np.argwhere((self.result.routing > 0) & (self.constants.rates > 0)[:, None]):
            yield int(i), int(k), f"{self.class_names[i]} on {self.configuration_names[k]}"

    def max_length(self) -> Iterator[Violation]:
        """The longest request fits."""
        allowed = eligible(self.instance)
        for i, k, name in self._used_pairs():
            if not allowed[i, k]:
                c, m = self.instance.classes[i], self.instance.configurations[k].kv_capacity_tokens
                message = f"longest request is {c.input_tokens_max + c.max_output_tokens} tokens, a group holds {m}"
                yield Violation(Check.MAX_LENGTH, name, message)

    def reservation(self) -> Iterator[Violation]:
        """Blocks and range."""
        block = self.instance.block_tokens
        for c, r in zip(self.instance.classes, self.result.reservation_tokens, strict=True):
            if r % block:
                yield Violation(Check.RESERVATION_BLOCK, c.name, f"{r} tokens are no multiple of {block}")
            low = ceil_to_block(c.input_tokens_p95, block)
            high = ceil_to_block(c.input_tokens_p95 + c.max_output_tokens, block)
            if not low <= r <= high:
                yield Violation(Check.RESERVATION_RANGE, c.name, f"{r} tokens lie outside [{low}, {high}]")

    def caching(self) -> Iterator[Violation]:
        """δ needs a block to share and a group."""
        shareable = prefix_tokens(self.instance) > 0
        for i, k in np.argwhere(self.result.cached):
            if not shareable[i] or self.z[k] <= 0:
                name = f"{self.class_names[i]} on {self.configuration_names[k]}"
                yield Violation(Check.CACHING, name, "a prefix is cached where there is none, or no group")

    def fit(self) -> Iterator[Violation]:
        """R̃ ≤ Q."""
        reservation = np.array(self.result.reservation_tokens, dtype=np.float64)
        held = effective_tokens(self.instance, reservation, self.result.cached)
        budget = budgets(self.instance, self.result.cached)
        for i, k, name in self._used_pairs():
            if held[i, k] > budget[k]:
                message = f"a request holds {held[i, k]:.0f} tokens, a group may hold {budget[k]:.0f} in all"
                yield Violation(Check.FIT, name, message)

    def memory(self) -> Iterator[Violation]:
        """(6e)."""
        reservation = np.array(self.result.reservation_tokens, dtype=np.float64)
        used = memory_tokens(self.instance, self.in_flight, reservation, self.result.cached)
        for k, configuration in enumerate(self.instance.configurations):
            if self.z[k] > 0 and used[k] > configuration.kv_capacity_tokens * (1 + self.memory_slack):
                message = f"{used[k]:.1f} tokens needed, {configuration.kv_capacity_tokens} there"
                yield Violation(Check.MEMORY, configuration.name, message)

    def utilisation(self) -> Iterator[Violation]:
        """u ≤ u_max."""
        rates = self.result.routing * self.constants.rates[:, None]
        u = utilisation(rates, self.constants.T, self.z, self.constants.slots)
        for k, name in enumerate(self.configuration_names):
            if u[k] > self.instance.max_utilisation * (1 + self.tolerance):
                message = f"utilisation {u[k]:.6f} exceeds {self.instance.max_utilisation}"
                yield Violation(Check.UTILISATION, name, message)

    def slo_excess(self) -> Iterator[Violation]:
        """s, recomputed."""
        _, excess = self._evaluated()
        for name, stated, true in zip(self.class_names, self.result.slo_excess_seconds, excess, strict=True):
            if not self._close(stated, float(true), max(1.0, float(true))):
                yield Violation(Check.SLO_EXCESS, name, f"stated {stated:.6g} s, the queue gives {true:.6g} s")

    def costs(self) -> Iterator[Violation]:
        """(6a), recomputed."""
        parts, _ = self._evaluated()
        for cause in ("reservation", "gpu", "latency", "rejection"):
            stated, true = getattr(self.result.costs, cause), getattr(parts, cause)
            if not self._close(stated, true, parts.total):
                yield Violation(Check.COSTS, cause, f"stated {stated:.9g}, recomputed {true:.9g}")

    def lower_bound(self) -> Iterator[Violation]:
        """A bound above a feasible plan's cost is none."""
        bound, objective = self.result.lower_bound, self.result.objective
        if np.isnan(bound) or bound > objective + self.tolerance * abs(objective):
            yield Violation(Check.LOWER_BOUND, "fleet", f"bound {bound:.9g} exceeds the objective {objective:.9g}")
        nothing = np.zeros(len(self.configuration_names))
        reservation = np.array(self.result.reservation_tokens, dtype=np.float64)
        idle, _ = evaluate(self.constants, nothing, reservation, np.zeros_like(self.result.routing))
        if self.instance.min_gpus == 0 and bound > idle.total * (1 + self.tolerance):
            message = f"bound {bound:.9g} exceeds the cost of rejecting everything, {idle.total:.9g}"
            yield Violation(Check.LOWER_BOUND, "fleet", message)

    def status(self) -> Iterator[Violation]:
        """Optimal means proven."""
        if self.result.status is not Status.OPTIMAL:
            return
        if not np.isfinite(self.result.lower_bound):
            yield Violation(Check.STATUS, "fleet", "Optimal without a finite bound")
        elif self.gap_target is not None and self.result.gap > self.gap_target + self.tolerance:
            message = f"Optimal with a gap of {self.result.gap:.6f}, target {self.gap_target:.6f}"
            yield Violation(Check.STATUS, "fleet", message)

    def _evaluated(self) -> tuple[CostParts, Floats]:
        reservation = np.array(self.result.reservation_tokens, dtype=np.float64)
        return evaluate(self.constants, self.z, reservation, self.result.routing)

    def _close(self, stated: float, true: float, scale: float) -> bool:
        return bool(abs(stated - true) <= self.tolerance * scale)


def _all_finite(values: object) -> bool:
    try:
        return bool(np.all(np.isfinite(np.asarray(values, dtype=np.float64))))
    except (TypeError, ValueError):  # text, None or ragged rows where numbers belong
        return False
