"""``kvplan explain``: why a plan is as it is, with a sentence for every number, and what would change it.

Inputs: manifests, traces, and a plan file or none. With a plan file that plan is explained as it stands; without
one a plan is made first, and only then is there a bound and a next best partition to speak of.
"""

from typing import Annotated

import typer

from kvplan_cli.explain_view import explain_view
from kvplan_cli.inputs import FilesOption, read_manifests, read_plan, the_fleet
from kvplan_cli.output import Format, OutputOption, show
from kvplan_cli.planning import (
    FleetOption,
    MethodOption,
    SeedOption,
    SolveChoice,
    TimeLimitOption,
    TraceOption,
    planned_or_exit,
)
from kvplan_cli.problems import problem_of
from kvplan_operator.plan.assess import assess_plan
from kvplan_operator.plan.explain import explain as explanation_of


def explain(
    filename: FilesOption,
    plan: Annotated[str | None, typer.Argument(help="Plan file. Absent: a plan is made first.")] = None,
    fleet: FleetOption = "",
    trace: TraceOption = None,
    method: MethodOption = None,
    time_limit: TimeLimitOption = None,
    seed: SeedOption = 0,
    output: OutputOption = Format.TABLE,
) -> None:
    """Explain a plan: what binds, why each class reserves what it does, and what would change it."""
    manifests = read_manifests(filename)
    problem = problem_of(manifests, the_fleet(manifests, fleet), trace or [])
    if plan is not None:
        planned = assess_plan(read_plan(plan), problem)
    else:
        planned = planned_or_exit(problem, SolveChoice(method, time_limit, seed))
    show(explain_view(planned, explanation_of(planned)), output)
