"""``kvplan diff``: what changes between two plans, like ``diff``: exit code 0 equal, 1 different, 2 error.

Two plan files, or two plans of a fleet on a cluster: the one in force and the one that waits where nothing is said.
"""

from typing import Annotated

import typer

from kvplan_cli.cluster.choosing import CANDIDATE, CURRENT, chosen_plan
from kvplan_cli.cluster.place import ContextOption, KubeconfigOption, NamespaceOption, Place, check_no_place
from kvplan_cli.cluster.reading import read_fleet
from kvplan_cli.cluster.session import Session, in_cluster
from kvplan_cli.diff_view import diff_view
from kvplan_cli.errors import CommandError, ExitCode
from kvplan_cli.grounds import fleet_named
from kvplan_cli.inputs import read_plan
from kvplan_cli.output import Format, OutputOption, show
from kvplan_cli.planning import FleetOption
from kvplan_operator.plan.diff import PlanDiff, diff_plans


def diff(
    plans: Annotated[
        list[str] | None,
        typer.Argument(metavar="[OLD NEW | FLEET]", help="Two plan files, - for stdin; or a fleet of the cluster."),
    ] = None,
    old: Annotated[str, typer.Option(help="Cluster: plan before, as a role, name or digest.")] = CURRENT,
    new: Annotated[str, typer.Option(help="Cluster: plan after, as a role, name or digest.")] = CANDIDATE,
    fleet: FleetOption = "",
    namespace: NamespaceOption = "",
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    output: OutputOption = Format.TABLE,
) -> None:
    """Compare two plans: which pods restart, and what routers change. Exit code 0 equal, 1 different."""
    given, place = plans or [], Place(namespace, kubeconfig, context)
    if len(given) > 2:
        raise CommandError("diff", f"{len(given)} arguments", "give two plan files, or the name of a fleet")
    if len(given) == 2:
        check_no_place(place)
        difference = diff_plans(read_plan(given[0]), read_plan(given[1]))
    else:
        difference = _on_cluster(place, fleet_named("".join(given), fleet), old, new)
    show(diff_view(difference), output)
    if not difference.empty:
        raise typer.Exit(ExitCode.NEGATIVE)


def _on_cluster(place: Place, fleet: str, old: str, new: str) -> PlanDiff:
    async def job(session: Session) -> PlanDiff:
        shelf = (await read_fleet(session, fleet)).shelf
        first = old == CURRENT and shelf.current is None
        return diff_plans(None if first else chosen_plan(shelf, old), chosen_plan(shelf, new))

    return in_cluster(place, job)
