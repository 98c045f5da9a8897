"""``kvplan approve``: accept a plan, so that the operator puts it in force.

Writes one field of the fleet (``cluster.approval``). Exit code 0 accepted, and with ``--wait`` in force; 1 the wait
ended without that; 2 refused, nothing was written.
"""

import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from kvplan_cli.cluster.approval import accept, what_follows
from kvplan_cli.cluster.checking import check_plan
from kvplan_cli.cluster.choosing import CANDIDATE, chosen_plan
from kvplan_cli.cluster.following import End, follow
from kvplan_cli.cluster.place import (
    ClusterFleetOption,
    ContextOption,
    DryRunOption,
    KubeconfigOption,
    NamespaceOption,
    Place,
)
from kvplan_cli.cluster.reading import FleetView, read_fleet
from kvplan_cli.cluster.session import Session, in_cluster
from kvplan_cli.errors import ExitCode
from kvplan_cli.output import note
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.plan.digest import plan_digest

ForceOption = Annotated[
    bool, typer.Option("--force", help="Write even where another field manager owns the field; its next sync wins.")
]
WaitOption = Annotated[bool, typer.Option("--wait", help="Follow until the plan is in force or the fleet is stalled.")]
TimeoutOption = Annotated[
    float | None, typer.Option("--timeout", min=0.1, help="Seconds that --wait waits. Absent: as long as it takes.")
]


@dataclass(frozen=True)
class Manner:
    """How a plan is accepted.

    Attributes:
        force: take the field from another manager.
        dry_run: write nothing.
        wait: follow until it is in force.
        seconds: longest wait; None for ever.
    """

    force: bool = False
    dry_run: bool = False
    wait: bool = False
    seconds: float | None = None


def approve(
    plan: Annotated[
        str, typer.Argument(metavar="[PLAN]", help="candidate, a plan's name, or ten or more digits of its digest.")
    ] = CANDIDATE,
    fleet: ClusterFleetOption = "",
    namespace: NamespaceOption = "",
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    force: ForceOption = False,
    dry_run: DryRunOption = False,
    wait: WaitOption = False,
    timeout: TimeoutOption = None,
) -> None:
    """Accept a plan of a fleet by its digest; the one that waits where none is named."""
    manner = Manner(force, dry_run, wait, timeout)

    async def job(session: Session) -> End | None:
        view = await read_fleet(session, fleet)
        meant = chosen_plan(view.shelf, plan)
        await check_plan(session, view, meant)
        return await accept_and_tell(session, view, meant, manner)

    leave(in_cluster(Place(namespace, kubeconfig, context), job))


async def accept_and_tell(session: Session, view: FleetView, plan: RoutingPlan, manner: Manner) -> End | None:
    """Write, say what follows, and wait where that is asked for; how the wait ended."""
    written = await accept(session, view, plan, force=manner.force, dry_run=manner.dry_run)
    digest, suffix = plan_digest(plan.spec), " (dry run)" if manner.dry_run else ""
    sys.stdout.write(f"ServingFleet {view.name} accepts {plan.metadata.name}, digest {digest}{suffix}\n")
    sys.stdout.flush()
    for line in what_follows(view, plan):
        note(line)
    if not manner.wait or manner.dry_run:
        return None
    return await follow(session, written, digest, note, manner.seconds)


def leave(end: End | None) -> None:
    """Tell how a wait ended; exit code 1 where the plan is not in force."""
    if end is None:
        return
    note(end.message)
    if not end.done:
        raise typer.Exit(ExitCode.NEGATIVE)
