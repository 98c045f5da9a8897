"""What the operator remembers of one fleet between two looks. Losing it costs time and nothing else.

Everything decided is in the cluster's objects; here are only caches (the problem and its assessments, measurements
settled on), what runs in the background (a measurement, a solve) and what a solve found before it is written down.
"""

import asyncio
from dataclasses import dataclass, field
from typing import NamedTuple

from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.api.routing_plan_status import HotClass, RoutingPlanStatus
from kvplan_operator.logs import FleetLog
from kvplan_operator.model.facts import ClassFacts
from kvplan_operator.model.inventory import Inventory
from kvplan_operator.model.priors.resolve import Measurement
from kvplan_operator.model.problem import PlanningInputs, Problem
from kvplan_operator.model.snapshot import Measured, Snapshot
from kvplan_operator.plan.planned import Planned
from kvplan_operator.plan.solve_due import LastSolve
from kvplan_operator.reconcile.solver_child import Solved
from kvplan_operator.route.keys import KeyDecision
from kvplan_operator.route.published import Published


@dataclass
class Problems:
    """The last problem, what it was built from, and plans assessed on it.

    Attributes:
        made_of: the inputs; None before the first.
        refused: what of them is not supported; empty where all is.
        problem: built from it; None where it could not be built.
        trouble: why not.
        assessed: by digest and hot values; an error's words where the plan does not fit the problem.
    """

    made_of: PlanningInputs | None = None
    refused: str = ""
    problem: Problem | None = None
    trouble: str = ""
    assessed: dict[tuple[str, tuple[HotClass, ...]], Planned | str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Seen:
    """What the last inventory was read off.

    Attributes:
        snapshot: with its objects.
        inventory: of them.
    """

    snapshot: Snapshot
    inventory: Inventory


@dataclass
class Solve:
    """A solve under way.

    Attributes:
        task: to be awaited or cancelled.
        inputs_digest: of the fields it is made from.
        inventory_digest: of the GPUs it is made for.
    """

    task: "asyncio.Task[Solved]"
    inputs_digest: str
    inventory_digest: str


class Awaited(NamedTuple):
    """What routers are waited for with.

    Attributes:
        order: (epoch, generation) of an index that some do not have; None where all have it.
        starting: routers that it does not name yet.
    """

    order: tuple[int, int] | None
    starting: tuple[str, ...]


@dataclass
class Memory:
    """One fleet's.

    Attributes:
        log: of the fleet.
        measured: the latest measurements.
        measured_at: when all of them were asked for, seconds since the epoch; 0 before the first.
        pods_at: when engines and routers were asked last, seconds since the epoch.
        asked: whether a measurement has ended since the start.
        measuring: the look at Prometheus, engines and routers under way.
        facts: measurements of classes planned from last; None after a start.
        measurements: the same of configurations.
        seen: the last inventory; None before the first.
        problems: the last problem.
        solve: under way; None where none is.
        last_solve: what the last one was made from.
        solved: how the last one ended.
        untaken: the plan that a solve found, until it is known what becomes of it.
        found: status of plans that a solve found and that was not written yet, by digest.
        hot: values that a solve found for the plan in force, by its digest; not written yet.
        candidate: what a solve made of the plan that waits, until the fleet's status says so: a digest or nothing;
            None where the status has the last word.
        stored: plans that were just written, until the watch tells of them, with the time, by digest.
        in_force: the plan in force as last seen, to write it again if somebody deletes it.
        awaited: what routers were last found without, and since when.
        moving: whether something is waited for that no watch tells of.
        published: the table as last read.
        keys: what was last decided and written about keys.
        keys_at: when, seconds since the epoch.
    """

    log: FleetLog
    measured: Measured = field(default_factory=Measured)
    measured_at: float = 0.0
    pods_at: float = 0.0
    asked: bool = False
    measuring: "asyncio.Task[Measured] | None" = None
    facts: dict[str, ClassFacts] | None = None
    measurements: dict[str, Measurement] = field(default_factory=dict)
    seen: Seen | None = None
    problems: Problems = field(default_factory=Problems)
    solve: Solve | None = None
    last_solve: LastSolve | None = None
    solved: Solved | None = None
    found: dict[str, RoutingPlanStatus] = field(default_factory=dict)
    hot: dict[str, tuple[HotClass, ...]] = field(default_factory=dict)
    untaken: RoutingPlan | None = None
    candidate: tuple[str | None] | None = None
    stored: dict[str, tuple[float, RoutingPlan]] = field(default_factory=dict)
    in_force: RoutingPlan | None = None
    awaited: tuple[Awaited, float] | None = None
    moving: bool = False
    published: Published | None = None
    keys: KeyDecision | None = None
    keys_at: float = 0.0

    def drop(self) -> None:
        """End what runs in the background."""
        for task in (self.measuring, None if self.solve is None else self.solve.task):
            if task is not None:
                task.cancel()
        self.measuring = self.solve = None
