"""``kvplan verify``: whether a plan file holds, whoever wrote it. Exit code 0 holds, 1 violated.

Inputs: manifests of the fleet, a plan file. Output: every broken constraint by name. ``--reference`` also brackets
the optimum of a tiny instance by full enumeration with a model that shares no code with the planner; where that
is too large it says so and ends with exit code 2, because what was asked for was not done.
"""

from typing import Annotated

import typer

from kvplan_cli.errors import ExitCode
from kvplan_cli.inputs import FilesOption, read_manifests, read_plan, the_fleet
from kvplan_cli.output import Format, OutputOption, show
from kvplan_cli.planning import FleetOption, TraceOption
from kvplan_cli.problems import problem_of
from kvplan_cli.verification import verified
from kvplan_cli.verify_view import verify_view


def verify(
    filename: FilesOption,
    plan: Annotated[str, typer.Argument(help="Plan file, - for stdin.")],
    fleet: FleetOption = "",
    trace: TraceOption = None,
    reference: Annotated[
        bool, typer.Option("--reference", help="Also bracket the optimum by full enumeration (tiny fleets only).")
    ] = False,
    output: OutputOption = Format.TABLE,
) -> None:
    """Check a plan against every constraint. Exit code 0: it holds; 1: the violated constraints are named."""
    manifests = read_manifests(filename)
    problem = problem_of(manifests, the_fleet(manifests, fleet), trace or [])
    found = verified(read_plan(plan), problem, with_reference=reference)
    show(verify_view(found), output)
    if not found.holds:
        raise typer.Exit(ExitCode.NEGATIVE)
    if found.refused:
        raise typer.Exit(ExitCode.BAD_INPUT)
