"""``kvplan doctor``: what is wrong with an installation and its fleets, one line per check, each with a remedy.

Reads only. Exit code 0: nothing failed (warnings may stand); 1: something failed; 2: the cluster cannot be reached.
"""

from typing import Annotated

import typer

from kvplan_cli.cluster.place import ContextOption, KubeconfigOption, NamespaceOption, Place
from kvplan_cli.cluster.session import Session, in_cluster
from kvplan_cli.doctor.findings import Finding, findings_view, healthy
from kvplan_cli.doctor.looking import examine
from kvplan_cli.errors import ExitCode
from kvplan_cli.grounds import fleet_named
from kvplan_cli.output import Format, OutputOption, show
from kvplan_cli.planning import FleetOption


def doctor(
    name: Annotated[str, typer.Argument(metavar="[FLEET]", help="Name of the fleet, as --fleet. Absent: all.")] = "",
    fleet: FleetOption = "",
    namespace: NamespaceOption = "",
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    output: OutputOption = Format.TABLE,
) -> None:
    """Check API server, CRDs, operator, permissions, and of each fleet engines, routers, secret and Prometheus."""
    wanted = fleet_named(name, fleet)

    async def job(session: Session) -> tuple[Finding, ...]:
        return await examine(session, wanted)

    findings = in_cluster(Place(namespace, kubeconfig, context), job)
    show(findings_view(findings), output)
    if not healthy(findings):
        raise typer.Exit(ExitCode.NEGATIVE)
