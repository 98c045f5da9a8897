"""``kvplan plan``: a certified RoutingPlan from manifests and traces, or from a cluster, which is only read.

Inputs: manifests or a cluster, traces, changes to try. Outputs: the plan on stdout, and where asked for a plan file
and pictures. ``--what-if`` shows the changed fleet's plan beside today's and never writes it; ``--against``
compares with a plan file; from a cluster the plan is compared with the one in force.
A plan that its certificate rejects, or that serves nobody while requests arrive, is shown with what is wrong, never
written, and ends with exit code 1.
"""

from pathlib import Path
from typing import Annotated

import typer

from kvplan_cli.cluster.place import ContextOption, KubeconfigOption, NamespaceOption, Place, PrometheusOption
from kvplan_cli.diff_view import diff_view
from kvplan_cli.errors import CommandError, ExitCode
from kvplan_cli.grounds import fleet_named, grounds_of
from kvplan_cli.inputs import OptionalFilesOption, read_plan
from kvplan_cli.output import Format, OutputOption, View, note, show
from kvplan_cli.plan_figures import plan_figures
from kvplan_cli.plan_files import write_plan
from kvplan_cli.plan_view import plan_view
from kvplan_cli.planning import (
    FleetOption,
    MethodOption,
    PlotOption,
    SeedOption,
    SolveChoice,
    TimeLimitOption,
    TraceOption,
    planned_or_exit,
)
from kvplan_cli.plots.save import save_figures
from kvplan_cli.plots.style import require_matplotlib
from kvplan_cli.targets import check_directory_target, check_file_target, given_path
from kvplan_cli.what_if_view import what_if_view
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.plan.assess import assess_plan
from kvplan_operator.plan.cautions import serves_nobody
from kvplan_operator.plan.diff import diff_plans
from kvplan_operator.plan.planned import Planned
from kvplan_operator.plan.what_if import apply_changes, parse_change


def plan(
    name: Annotated[str, typer.Argument(metavar="[FLEET]", help="Name of the fleet, as --fleet.")] = "",
    filename: OptionalFilesOption = None,
    fleet: FleetOption = "",
    trace: TraceOption = None,
    method: MethodOption = None,
    time_limit: TimeLimitOption = None,
    seed: SeedOption = 0,
    what_if: Annotated[
        list[str] | None,
        typer.Option(help="A change to plan for, such as gpus=+8 or rate.chat=x1.5, beside today. Repeatable."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            parser=given_path, metavar="PATH", help="A plan file to compare with, and to start the search from."
        ),
    ] = None,
    plot: PlotOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            parser=given_path, metavar="PATH", help="File for the RoutingPlan, replaced as a whole; not with --what-if."
        ),
    ] = None,
    namespace: NamespaceOption = "",
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    prometheus: PrometheusOption = "",
    output: OutputOption = Format.TABLE,
) -> None:
    """Plan a fleet of files (-f) or of a cluster: which groups run where, what each class reserves, its routes."""
    _check_targets(what_if or [], plot, out)
    place = Place(namespace, kubeconfig, context)
    grounds = grounds_of(filename, fleet_named(name, fleet), trace or [], place, prometheus)
    problem = grounds.problem
    changes = [parse_change(text) for text in what_if or ()]
    old = assess_plan(read_plan(str(against)), problem) if against else None
    choice = SolveChoice(method, time_limit, seed, old.result if old else None)
    planned = planned_or_exit(problem, choice, running=grounds.in_force)
    shown = planned
    if changes:
        shown = planned_or_exit(apply_changes(problem.inputs, changes).problem(), choice, "what-if", grounds.in_force)
    show(_view(planned, shown, old.plan if old else grounds.in_force, what_if or []), output)
    nobody = serves_nobody(shown)
    if nobody:
        note(nobody)
    if nobody or not shown.certificate.holds:
        raise typer.Exit(ExitCode.NEGATIVE)
    if plot is not None:
        _note_written(save_figures(plot, plan_figures(shown, old or (planned if changes else None))))
    if out is not None:
        _note_written([write_plan(out, shown.plan)])


def _check_targets(what_if: list[str], plot: Path | None, out: Path | None) -> None:
    """Before any work: what is to be written can be, and no plan of nodes that do not exist becomes a file."""
    if what_if and out is not None:
        problem = "the plan of a --what-if is for a fleet that does not exist, so it is no file to apply"
        raise CommandError("--out", problem, "leave one of the two out; -o yaml prints both plans")
    check_file_target("--out", out)
    check_directory_target("--plot", plot)
    if plot is not None:
        require_matplotlib()


def _view(planned: Planned, shown: Planned, old: RoutingPlan | None, changes: list[str]) -> View:
    """The plan, or today's beside the changed one, followed by the difference to the old plan."""
    view = what_if_view(planned, shown, changes) if changes else plan_view(planned)
    if old is None:
        return view
    difference = diff_view(diff_plans(old, shown.plan))
    return View(view.document, [*view.sections, *difference.sections])


def _note_written(paths: list[Path]) -> None:
    for path in paths:
        note(f"wrote {path}")
