"""Options and steps that the planning commands share.

Inputs: a problem and option values. Output: a ``Planned``. Shows the search's progress on stderr.
"""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from kvplan_cli.errors import ExitCode
from kvplan_cli.progress import Progress
from kvplan_cli.targets import given_path
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.problem import Problem
from kvplan_operator.plan.no_plan import NoPlan
from kvplan_operator.plan.planned import Planned
from kvplan_operator.plan.planner import make_plan, solver_options
from kvplan_solver.result import Method, Options, Result

FleetOption = Annotated[str, typer.Option(help="Name of the fleet, where the files hold several.")]
TraceOption = Annotated[
    list[str] | None,
    typer.Option(help="CLASS=FILE of requests (csv, tsv, jsonl, parquet; also .gz). Repeatable."),
]
MethodOption = Annotated[Method | None, typer.Option(help="How to plan. Absent: the fleet's spec.solver.method.")]
TimeLimitOption = Annotated[
    float | None, typer.Option(min=0.01, max=86_400, help="Seconds for the search. Absent: none, work is counted.")
]
LARGEST_SEED = 2**53 - 1
"""The largest integer that JSON carries exactly: a plan records its seed."""
SeedOption = Annotated[
    int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of the search; the same seed gives the same plan.")
]

PlotOption = Annotated[
    Path | None,
    typer.Option(
        parser=given_path,
        metavar="PATH",
        help="Directory for PNG figures of the plan; needs the extra kvplan\\[plots].",
    ),
]


@dataclass(frozen=True)
class SolveChoice:
    """What the command line says about the search.

    No method leaves it to the fleet. No time limit is none at all: the fleet's is the running operator's, and here
    equal input gives equal bytes.
    """

    method: Method | None = None
    time_limit: float | None = None
    seed: int = 0
    warm_start: Result | None = None

    def options(self, problem: Problem, progress: Progress) -> Options:
        """The solver's options."""
        wanted = solver_options(problem.fleet, clock=progress.clock, on_incumbent=progress.on_incumbent)
        return replace(
            wanted,
            method=self.method or wanted.method,
            deadline_seconds=self.time_limit,
            seed=self.seed,
            warm_start=self.warm_start,
        )


def planned_or_exit(
    problem: Problem, choice: SolveChoice, what: str = "plan", running: RoutingPlan | None = None
) -> Planned:
    """Plan; leave with exit code 1 and the reason where no plan exists at all.

    Args:
        problem: of a fleet.
        choice: of the command line.
        what: for messages.
        running: the plan in force, whose engine flags stay where they would change little.

    Raises:
        SolverError: the search cannot be run as asked.
    """
    with Progress(what) as progress:
        try:
            return make_plan(problem, choice.options(problem, progress), running)
        except NoPlan as error:
            sys.stderr.write(f"{what}: there is no plan. {error}\n")
            raise typer.Exit(ExitCode.NEGATIVE) from None
