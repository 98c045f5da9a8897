"""``kvplan diff``: what changes between two plan files, like ``diff``: exit code 0 equal, 1 different, 2 error."""

from typing import Annotated

import typer

from kvplan_cli.diff_view import diff_view
from kvplan_cli.errors import ExitCode
from kvplan_cli.inputs import read_plan
from kvplan_cli.output import Format, OutputOption, show
from kvplan_operator.plan.diff import diff_plans


def diff(
    old: Annotated[str, typer.Argument(help="Plan file before, - for stdin.", metavar="OLD")],
    new: Annotated[str, typer.Argument(help="Plan file after, - for stdin.", metavar="NEW")],
    output: OutputOption = Format.TABLE,
) -> None:
    """Compare two plans: which pods restart, and what routers change. Exit code 0 equal, 1 different."""
    difference = diff_plans(read_plan(old), read_plan(new))
    show(diff_view(difference), output)
    if not difference.empty:
        raise typer.Exit(ExitCode.NEGATIVE)
