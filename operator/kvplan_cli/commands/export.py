"""``kvplan export``: a plan of a cluster as YAML for git, or for another cluster. Reads only.

What is written holds the decision and nothing of the cluster it came from: no uid, owner, status or ledger. It is
labelled as made by people, so that it is kept for good; applying it where it came from changes nothing else.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from kvplan_cli.cluster.choosing import CANDIDATE, CURRENT, chosen_plan
from kvplan_cli.cluster.place import ClusterFleetOption, ContextOption, KubeconfigOption, NamespaceOption, Place
from kvplan_cli.cluster.reading import FleetView, read_fleet
from kvplan_cli.cluster.session import in_cluster
from kvplan_cli.files import yaml_documents
from kvplan_cli.output import note
from kvplan_cli.plan_files import Document, write_document
from kvplan_cli.targets import check_file_target, given_path
from kvplan_operator.api.labels import API_VERSION, FLEET_LABEL, ORIGIN_LABEL, ORIGIN_USER
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.plan.document import BATCH_ANNOTATION


def export(
    plan: Annotated[
        str,
        typer.Argument(metavar="[PLAN]", help="A role, name or digest. Absent: the candidate, else the one in force."),
    ] = "",
    fleet: ClusterFleetOption = "",
    namespace: NamespaceOption = "",
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    out: Annotated[
        Path | None, typer.Option(parser=given_path, metavar="PATH", help="File, replaced as a whole. Absent: stdout.")
    ] = None,
) -> None:
    """Print a plan as clean YAML for git: apply it there and accept its digest."""
    check_file_target("--out", out)
    view = in_cluster(Place(namespace, kubeconfig, context), lambda session: read_fleet(session, fleet))
    document = clean(_meant(view, plan))
    if out is None:
        sys.stdout.write(yaml_documents([document]))
    else:
        note(f"wrote {write_document(out, document)}")


def clean(plan: RoutingPlan) -> Document:
    """The plan as people keep it in git."""
    metadata = plan.metadata
    kept: Document = {
        "name": metadata.name,
        "namespace": metadata.namespace,
        "labels": {FLEET_LABEL: plan.spec.fleet_name, ORIGIN_LABEL: ORIGIN_USER},
    }
    batch = metadata.annotations.get(BATCH_ANNOTATION)
    if batch is not None:
        kept["annotations"] = {BATCH_ANNOTATION: batch}
    return {"apiVersion": API_VERSION, "kind": plan.kind, "metadata": kept, "spec": plan.spec.to_wire()}


def _meant(view: FleetView, word: str) -> RoutingPlan:
    shelf = view.shelf
    return chosen_plan(shelf, word or (CANDIDATE if shelf.candidate or not shelf.current else CURRENT))
