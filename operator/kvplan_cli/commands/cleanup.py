"""``kvplan cleanup --engines``: remove engines that kvplan made for fleets that are gone.

Lists them, asks, and deletes each by its uid after looking once more that its fleet did not come back. Exit code 0 also
where there is nothing to remove.
"""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from kvplan_cli.cluster.leftovers import KINDS, Leftover, leftovers
from kvplan_cli.cluster.place import ContextOption, KubeconfigOption, NamespaceOption, Place, YesOption
from kvplan_cli.cluster.reading import Object
from kvplan_cli.cluster.session import Session, in_cluster
from kvplan_cli.errors import CommandError
from kvplan_cli.output import Format, View, note, sentence, show, table
from kvplan_cli.questions import agreed
from kvplan_operator.api.labels import FLEET_LABEL
from kvplan_operator.kube.errors import Gone, NotServed
from kvplan_operator.kube.resources import SERVING_FLEETS, Resource

_HEADINGS = ("object", "namespace", "fleet that is gone", "groups")


def cleanup(
    engines: Annotated[
        bool, typer.Option("--engines", help="Deployments, LeaderWorkerSets and flag files that kvplan made.")
    ] = False,
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Look everywhere.")] = False,
    namespace: NamespaceOption = "",
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    yes: YesOption = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List only.")] = False,
) -> None:
    """Remove what fleets that are gone left behind; never what belongs to a fleet that exists."""
    if not engines:
        raise CommandError("cleanup", "it is not said what to remove", "give --engines, with --dry-run to list only")

    async def job(session: Session) -> None:
        found = await _found(session, None if all_namespaces else session.namespace)
        show(_view(found), Format.TABLE)
        sys.stdout.flush()
        if not found or dry_run:
            return
        if not (yes or agreed(f"Remove these {len(found)} objects? Engines that serve stop.")):
            raise typer.Abort
        for leftover in found:
            await _remove(session, leftover)

    in_cluster(Place(namespace, kubeconfig, context), job)


async def _found(session: Session, namespace: str | None) -> tuple[Leftover, ...]:
    fleets = await session.client.list(SERVING_FLEETS, namespace)
    existing = {(item["metadata"]["namespace"], item["metadata"]["name"]) for item in fleets.items}
    items = [item for kind in KINDS for item in await _labelled(session, kind, namespace)]
    return leftovers(items, existing)


async def _labelled(session: Session, kind: Resource, namespace: str | None) -> Sequence[Object]:
    try:
        return (await session.client.list(kind, namespace, labels=FLEET_LABEL)).items
    except NotServed:
        return ()  # LeaderWorkerSet is not installed


async def _remove(session: Session, leftover: Leftover) -> None:
    """Delete one object, unless its fleet came back or the object is another one by now."""
    if await session.client.find(SERVING_FLEETS, leftover.namespace, leftover.fleet) is not None:
        note(f"kept {leftover.title}: ServingFleet {leftover.fleet} is back")
        return
    try:
        await session.client.delete(
            leftover.kind, leftover.namespace, leftover.name, uid=leftover.uid, propagation="Background"
        )
    except Gone:
        note(f"kept {leftover.title}: another object has its name by now")
    else:
        sys.stdout.write(f"{leftover.title} deleted\n")


def _view(found: Sequence[Leftover]) -> View:
    if not found:
        return View({}, [sentence("Nothing is left behind: every engine that kvplan made belongs to a fleet.")])
    rows = ([one.title, one.namespace, one.fleet, one.replicas or None] for one in found)
    return View({}, [table("Left behind", _HEADINGS, rows)])
