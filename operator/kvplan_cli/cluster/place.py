"""Which cluster and namespace a command is about: kubectl's options, with kubectl's meaning.

Inputs: options. Output: a frozen ``Place``. Asks nothing of a cluster.
"""

from dataclasses import dataclass
from typing import Annotated

import typer

from kvplan_cli.errors import CommandError

NamespaceOption = Annotated[
    str, typer.Option("--namespace", "-n", help="Namespace. Absent: that of the kubeconfig's context, else default.")
]
KubeconfigOption = Annotated[
    str, typer.Option("--kubeconfig", help="Kubeconfig file. Absent: $KUBECONFIG, else ~/.kube/config.")
]
ContextOption = Annotated[str, typer.Option("--context", help="Context of the kubeconfig. Absent: its current one.")]
ClusterFleetOption = Annotated[str, typer.Option("--fleet", help="Name of the fleet, where the namespace has several.")]
PrometheusOption = Annotated[
    str,
    typer.Option(
        "--prometheus", help="Cluster: address of a Prometheus to measure with, such as http://localhost:9090."
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would be done; the API server checks it.")]


@dataclass(frozen=True)
class Place:
    """Where a command looks.

    Attributes:
        namespace: as given; empty for that of the context.
        kubeconfig: file as given; empty for kubectl's own search.
        context: as given; empty for the current one.
    """

    namespace: str = ""
    kubeconfig: str = ""
    context: str = ""


def check_no_place(place: Place, prometheus: str = "") -> None:
    """Refuse options about a cluster where files are read.

    Raises:
        CommandError: one is given.
    """
    given = {"--namespace": place.namespace, "--kubeconfig": place.kubeconfig, "--context": place.context}
    for option, value in ({**given, "--prometheus": prometheus}).items():
        if value:
            raise CommandError(option, "files are read (-f), not a cluster", "leave one of the two out")
