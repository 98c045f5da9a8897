"""``kvplan table``: a plan and key rates to the routing table, as ConfigMaps that routers read.

Inputs: manifests, a plan file (or none: it is planned first), key rates, the hash secret. Outputs: a report, and
with ``--out`` the index and its shards, each file whole. Where no key can be planned nothing is
written and the exit code is 1: an empty table never replaces a good one.
"""

from pathlib import Path
from typing import Annotated

import typer

from kvplan_cli.errors import CommandError, ExitCode, reason_of
from kvplan_cli.inputs import FilesOption, read_manifests, read_plan, the_fleet
from kvplan_cli.key_rows import read_key_file
from kvplan_cli.output import Format, OutputOption, note, show
from kvplan_cli.planning import FleetOption, PlotOption, SolveChoice, TraceOption, planned_or_exit
from kvplan_cli.plots.save import save_figures
from kvplan_cli.plots.style import require_matplotlib
from kvplan_cli.problems import problem_of
from kvplan_cli.table_figures import table_figures
from kvplan_cli.table_files import write_table
from kvplan_cli.table_view import table_view
from kvplan_cli.targets import check_directory_target, given_path
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.plan.assess import assess_plan
from kvplan_operator.plan.index_head import TableVersion
from kvplan_operator.plan.planned import Planned
from kvplan_operator.plan.raw_keys import hashed
from kvplan_operator.plan.table_input import plan_table, table_input
from kvplan_solver.cacheroute.key_plan import KeyPlan, Outcome
from kvplan_solver.cacheroute.keys import fingerprint
from kvplan_solver.cacheroute.plan import plan_keys

LONGEST_SECRET = 64


def table(
    filename: FilesOption,
    keys: Annotated[
        Path, typer.Option(parser=given_path, metavar="PATH", help="Key rates (CSV), as kvplan fit writes them.")
    ],
    plan: Annotated[str | None, typer.Option(help="Plan file. Absent: a plan is made first.")] = None,
    before: Annotated[
        Path | None,
        typer.Option(parser=given_path, metavar="PATH", help="Key rates of the table in force, so that few keys move."),
    ] = None,
    secret_file: Annotated[
        Path | None, typer.Option(parser=given_path, metavar="PATH", help="The routers' hash secret, 16 to 64 bytes.")
    ] = None,
    fleet: FleetOption = "",
    trace: TraceOption = None,
    epoch: Annotated[int, typer.Option(min=0, help="Creation time of the index object, seconds.")] = 0,
    generation: Annotated[int, typer.Option(min=1, help="Number of the table within its epoch.")] = 1,
    plot: PlotOption = None,
    out: Annotated[
        Path | None, typer.Option(parser=given_path, metavar="PATH", help="Directory for the index and its shards.")
    ] = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Plan which keys get a fixed home, and write the routing table. Exit code 1: there is none to write."""
    for option, target in (("--out", out), ("--plot", plot)):
        check_directory_target(option, target)
    if plot is not None:
        require_matplotlib()
    manifests = read_manifests(filename)
    problem = problem_of(manifests, the_fleet(manifests, fleet), trace or [])
    measured = read_key_file(keys)
    secret = _secret(secret_file, problem.fleet)
    planned = assess_plan(read_plan(plan), problem) if plan is not None else planned_or_exit(problem, SolveChoice())
    in_force = _in_force(planned, before, secret) if before is not None else None
    rates = hashed(measured.rows, problem, secret)
    made = plan_table(planned, rates, fingerprint(secret), TableVersion(epoch, generation), in_force)
    show(table_view(made, in_force, measured.remarks()), output)
    if made.keys.outcome is not Outcome.PLANNED:
        raise typer.Exit(ExitCode.NEGATIVE)
    if plot is not None:
        for path in save_figures(plot, table_figures(problem.fleet.metadata.name, made.keys, in_force)):
            note(f"wrote {path}")
    if out is not None:
        for path in write_table(out, problem.fleet, made.encoded):
            note(f"wrote {path}")


def _in_force(planned: Planned, before: Path, secret: bytes) -> KeyPlan:
    """The table in force, planned again from its own rates."""
    made = table_input(planned, hashed(read_key_file(before).rows, planned.problem, secret))
    return plan_keys(made.rates, made.fleet, made.settings)


def _secret(path: Path | None, fleet: ServingFleet) -> bytes:
    """The secret's bytes as the routers mount them; without one a key of the fleet's own name, and a warning."""
    if path is None:
        name = f"{fleet.metadata.namespace}/{fleet.metadata.name}"
        note(f"WeakKeySecret: no --secret-file, keys are hashed under the fleet's name {name}")
        return name.encode().ljust(16, b"\0")[:LONGEST_SECRET]
    try:
        return path.read_bytes()
    except OSError as error:
        raise CommandError("--secret-file", f"{path} cannot be read ({reason_of(error)})", "check the path") from error
