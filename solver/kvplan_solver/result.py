"""The solver's output: one frozen value that a certificate can check and a plan can be written from."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from kvplan_solver.errors import InvalidInput
from kvplan_solver.instance import Floats, GroupPlacement

Bools = NDArray[np.bool_]


class Method(StrEnum):
    """How a result was found (02-solver §3)."""

    LITERAL = "Literal"
    CERTIFIED = "Certified"


class Status(StrEnum):
    """What a result is worth."""

    OPTIMAL = "Optimal"
    """Within the gap target of a proven lower bound, and the search ran its course."""
    FEASIBLE = "Feasible"
    """Every constraint holds; the counted work or the deadline ended before the gap target."""
    INFEASIBLE = "Infeasible"
    """No plan exists even with every request rejected; ``reason`` says why."""
    ERROR = "Error"
    """The method failed; ``message`` says how."""


class InfeasibleReason(StrEnum):
    """Why there is no plan at all. Demand beyond capacity is not one: it is rejected in part."""

    MIN_GPUS_ABOVE_BUDGET = "MinGpusAboveBudget"
    MIN_GPUS_DO_NOT_FIT = "MinGpusDoNotFit"


class BindingKind(StrEnum):
    """Constraints that can bind."""

    GPU_BUDGET = "GpuBudget"
    NODE_FIT = "NodeFit"
    MEMORY = "Memory"
    UTILISATION = "Utilisation"
    FIT = "Fit"
    LATENCY = "Latency"
    REJECTION = "Rejection"


@dataclass(frozen=True)
class BindingConstraint:
    """One binding constraint: its kind and the configuration, class or node it is about."""

    kind: BindingKind
    subject: str


@dataclass(frozen=True)
class CostParts:
    """The objective (6a) by cause, in cost per second."""

    reservation: float
    """Worst-case preemption and waste of admitted requests."""
    gpu: float
    """GPU-seconds of service (and of idle groups and switches, where priced)."""
    latency: float
    rejection: float

    @property
    def total(self) -> float:
        """The objective."""
        return self.reservation + self.gpu + self.latency + self.rejection


@dataclass(frozen=True)
class RunnerUp:
    """The best other partition that was evaluated."""

    groups: tuple[int, ...]
    objective: float


@dataclass(frozen=True)
class Rejection:
    """Demand of one class that the plan rejects, why, and the nearest change that would serve it."""

    class_name: str
    share: float
    why: str
    remedy: str


@dataclass(frozen=True)
class TracePoint:
    """One step of the search: what was done, objective and bound after it, seconds if a clock was given."""

    step: str
    objective: float
    lower_bound: float
    seconds: float | None = None


@dataclass(frozen=True, eq=False)
class Result:
    """A plan in the solver's terms; arrays follow the instance's classes (I) and configurations (K).

    Attributes:
        method: which method found it.
        status: what it is worth.
        groups: z, groups per configuration, length K.
        placements: one entry per group.
        reservation_tokens: r per class, tokens, multiples of the KV block, length I.
        routing: π, shape (I, K); the rest of each row to 1 is rejected.
        cached: δ, shape (I, K).
        slo_excess_seconds: s per class, admission-weighted seconds (6f), length I.
        costs: the objective by cause.
        lower_bound: proven lower bound on the objective; -inf where the method has none.
        shift_threshold_tokens: R per class (02-solver §2), tokens; nan outside Wasserstein1.
        gpu_price: cost per second saved per further GPU (added as whole nodes), from the relaxation's duals.
        memory_prices: cost saved per further KV token of a group's capacity, length K.
        work: counted work by kind (nodes, iterations, passes), deterministic.
        deadline_hit: whether the wall-clock safety stop ended the search; such results are not byte-stable.
        seconds: wall time by phase, if a clock was given; not part of byte-identity.
    """

    method: Method
    status: Status
    groups: tuple[int, ...]
    placements: tuple[GroupPlacement, ...]
    reservation_tokens: tuple[int, ...]
    routing: Floats
    cached: Bools
    slo_excess_seconds: tuple[float, ...]
    costs: CostParts
    lower_bound: float
    binding: tuple[BindingConstraint, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    runner_up: RunnerUp | None = None
    shift_threshold_tokens: tuple[float, ...] = ()
    gpu_price: float = 0.0
    memory_prices: tuple[float, ...] = ()
    seed: int = 0
    work: dict[str, int] = field(default_factory=dict)
    deadline_hit: bool = False
    infeasible_reason: InfeasibleReason | None = None
    message: str = ""
    trace: tuple[TracePoint, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def objective(self) -> float:
        """Cost per second (6a)."""
        return self.costs.total

    @property
    def gap(self) -> float:
        """(objective − lower bound)/objective; 0 when both are 0, inf without a bound."""
        if self.objective <= 0:
            return 0.0
        return max(0.0, (self.objective - self.lower_bound) / self.objective)

    @property
    def rejected(self) -> Floats:
        """π_i0, rejected share per class, length I."""
        return np.asarray(np.maximum(0.0, 1.0 - self.routing.sum(axis=1)))


@dataclass(frozen=True)
class Options:
    """How to solve. The same instance and options give the same bytes, unless the deadline strikes.

    Attributes:
        method: Certified or Literal.
        gap_target: stop once (objective − bound)/objective is at most this.
        deadline_seconds: wall-clock safety stop; needs ``clock``.
        effort: multiplies the counted-work limits.
        seed: for tie-breaking randomness; 0 is a seed too.
        clock: monotonic seconds; None means no deadline and no timings.
        on_incumbent: called with every new incumbent (streaming).
        warm_start: a previous result to start from, if its shape still fits.
        initial_groups: z⁽⁰⁾ of the literal method; None lets it choose.
    """

    method: Method = Method.CERTIFIED
    gap_target: float = 0.001
    deadline_seconds: float | None = None
    effort: int = 1
    seed: int = 0
    clock: Callable[[], float] | None = None
    on_incumbent: Callable[[Result], None] | None = None
    warm_start: Result | None = None
    initial_groups: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        sensible = np.isfinite(self.gap_target) and self.gap_target >= 0
        _require(bool(sensible), "gap_target", self.gap_target, "use a share of 0 or more")
        whole = isinstance(self.effort, int) and 1 <= self.effort <= _MOST_EFFORT
        _require(whole, "effort", self.effort, f"use a whole number from 1 to {_MOST_EFFORT}")
        deadline = self.deadline_seconds
        _require(deadline is None or deadline > 0, "deadline_seconds", deadline, "use a positive number of seconds")


_MOST_EFFORT = 1_000


def _require(condition: bool, field_name: str, value: object, remedy: str) -> None:
    if not condition:
        raise InvalidInput("options", field_name, value, remedy)
