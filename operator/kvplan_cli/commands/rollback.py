"""``kvplan rollback``: accept an older plan, after showing what that changes. Works with the solver down.

Writes the same field as ``approve``. Without ``--yes`` it asks, and where nobody can be asked it refuses.
"""

import sys
from typing import Annotated

import typer

from kvplan_cli.cluster.checking import check_plan
from kvplan_cli.cluster.choosing import PREVIOUS, chosen_plan
from kvplan_cli.cluster.following import End
from kvplan_cli.cluster.place import (
    ClusterFleetOption,
    ContextOption,
    DryRunOption,
    KubeconfigOption,
    NamespaceOption,
    Place,
    YesOption,
)
from kvplan_cli.cluster.reading import FleetView, read_fleet
from kvplan_cli.cluster.session import Session, in_cluster
from kvplan_cli.commands.approve import ForceOption, Manner, TimeoutOption, WaitOption, accept_and_tell, leave
from kvplan_cli.diff_view import diff_view
from kvplan_cli.errors import CommandError
from kvplan_cli.output import Format, show
from kvplan_cli.questions import agreed
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.plan.diff import diff_plans


def rollback(
    plan: Annotated[
        str, typer.Argument(metavar="[PLAN]", help="previous, a plan's name, or ten or more digits of its digest.")
    ] = PREVIOUS,
    fleet: ClusterFleetOption = "",
    namespace: NamespaceOption = "",
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    yes: YesOption = False,
    force: ForceOption = False,
    dry_run: DryRunOption = False,
    wait: WaitOption = False,
    timeout: TimeoutOption = None,
) -> None:
    """Accept an older plan: the one that was in force before where none is named. Shows the difference first."""
    manner = Manner(force, dry_run, wait, timeout)

    async def job(session: Session) -> End | None:
        view = await read_fleet(session, fleet)
        older = _older(view, plan)
        show(diff_view(diff_plans(view.shelf.plans.get(view.shelf.current or ""), older)), Format.TABLE)
        sys.stdout.flush()
        await check_plan(session, view, older)
        if not (yes or dry_run or agreed(f"Go back to {older.metadata.name}?")):
            raise typer.Abort
        return await accept_and_tell(session, view, older, manner)

    leave(in_cluster(Place(namespace, kubeconfig, context), job))


def _older(view: FleetView, word: str) -> RoutingPlan:
    older = chosen_plan(view.shelf, word)
    current = view.shelf.plans.get(view.shelf.current or "")
    if current is older:
        raise CommandError(f"RoutingPlan {older.metadata.name}", "it is in force", "name an older plan")
    return older
