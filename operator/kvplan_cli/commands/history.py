"""``kvplan history``: the plans of a fleet, what became of each, and who accepted it. Reads only."""

import time
from typing import Annotated

import typer

from kvplan_cli.cluster.history import history_view
from kvplan_cli.cluster.place import ContextOption, KubeconfigOption, NamespaceOption, Place
from kvplan_cli.cluster.reading import read_fleet
from kvplan_cli.cluster.session import in_cluster
from kvplan_cli.grounds import fleet_named
from kvplan_cli.output import Format, OutputOption, show
from kvplan_cli.planning import FleetOption


def history(
    name: Annotated[str, typer.Argument(metavar="[FLEET]", help="Name of the fleet, as --fleet.")] = "",
    fleet: FleetOption = "",
    namespace: NamespaceOption = "",
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    output: OutputOption = Format.TABLE,
) -> None:
    """List the plans of a fleet, the youngest first, with their state, cost and who accepted them."""
    place, wanted = Place(namespace, kubeconfig, context), fleet_named(name, fleet)
    view = in_cluster(place, lambda session: read_fleet(session, wanted))
    show(history_view(view, time.time()), output)
