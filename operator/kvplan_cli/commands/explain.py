"""``kvplan explain``: why a plan is as it is, with a sentence for every number, and what would change it.

Inputs: manifests, traces, and a plan file or none; or a cluster and one of its plans. A given plan is explained as it
stands; with files and without a plan one is made first, and only then is there a bound and a next best partition to
speak of. The plan in force is explained with the hot values that routers follow now.
"""

from typing import Annotated

import typer

from kvplan_cli.cluster.choosing import CANDIDATE, CURRENT, chosen_plan
from kvplan_cli.cluster.place import ContextOption, KubeconfigOption, NamespaceOption, Place, PrometheusOption
from kvplan_cli.cluster.reading import FleetView
from kvplan_cli.errors import CommandError
from kvplan_cli.explain_view import explain_view
from kvplan_cli.grounds import Grounds, fleet_named, grounds_of
from kvplan_cli.inputs import OptionalFilesOption, read_plan
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
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.plan.assess import assess_plan
from kvplan_operator.plan.explain import explain as explanation_of
from kvplan_operator.plan.hot_values import with_hot_values
from kvplan_operator.plan.planned import Planned


def explain(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="[PLAN|FLEET]", help="With -f a plan file (absent: a plan is made first); without, the fleet."
        ),
    ] = "",
    filename: OptionalFilesOption = None,
    plan: Annotated[
        str,
        typer.Option(
            help="Cluster: candidate, current, a name or a digest. Absent: the plan that waits, else the one in force."
        ),
    ] = "",
    fleet: FleetOption = "",
    trace: TraceOption = None,
    method: MethodOption = None,
    time_limit: TimeLimitOption = None,
    seed: SeedOption = 0,
    namespace: NamespaceOption = "",
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    prometheus: PrometheusOption = "",
    output: OutputOption = Format.TABLE,
) -> None:
    """Explain a plan: what binds, why each class reserves what it does, and what would change it."""
    place = Place(namespace, kubeconfig, context)
    if filename and plan:
        raise CommandError("--plan", "files are read (-f), not a cluster", "give the path of a plan file instead")
    name = fleet if filename else fleet_named(subject, fleet)
    grounds = grounds_of(filename, name, trace or [], place, prometheus)
    choice = SolveChoice(method, time_limit, seed)
    planned = _of_cluster(grounds, grounds.view, plan) if grounds.view else _of_files(grounds, subject, choice)
    show(explain_view(planned, explanation_of(planned)), output)


def _of_files(grounds: Grounds, path: str, choice: SolveChoice) -> Planned:
    return assess_plan(read_plan(path), grounds.problem) if path else planned_or_exit(grounds.problem, choice)


def _of_cluster(grounds: Grounds, view: FleetView, word: str) -> Planned:
    return assess_plan(plan_as_it_stands(view, word), grounds.problem)


def plan_as_it_stands(view: FleetView, word: str) -> RoutingPlan:
    """The plan that is meant, with the hot values in force where it is in force.

    Raises:
        CommandError: there is none.
    """
    shelf = view.shelf
    if not word and shelf.candidate is None and shelf.current is None:
        remedy = "kvplan plan shows the one that would be made now"
        raise CommandError(f"ServingFleet {view.name}", "no plan is proposed or in force", remedy)
    plan = chosen_plan(shelf, word or (CANDIDATE if shelf.candidate else CURRENT))
    return with_hot_values(plan, plan.status.hot_values)
