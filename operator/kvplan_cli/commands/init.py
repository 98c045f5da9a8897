"""``kvplan init``: a first ServingFleet and RequestClass for each model that vLLM Deployments of a namespace serve.

Reads Deployments, Pods and Nodes, and a Prometheus where one is named. Writes YAML to stdout or a file, never to the
cluster. What it writes was checked by the API types.
"""

import base64
import secrets
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from kvplan_cli.cluster.measuring import answers_of
from kvplan_cli.cluster.place import ContextOption, KubeconfigOption, NamespaceOption, Place, PrometheusOption
from kvplan_cli.cluster.session import Session, in_cluster
from kvplan_cli.drafting.documents import Draft, drafts
from kvplan_cli.drafting.servers import Server, servers
from kvplan_cli.drafting.traffic import Traffic, traffic_of, traffic_queries
from kvplan_cli.errors import CommandError, reason_of
from kvplan_cli.files import write_all, yaml_documents
from kvplan_cli.output import note
from kvplan_cli.targets import check_file_target, given_path
from kvplan_cli.yaml_reader import read_yaml
from kvplan_operator.api.manifests import load_manifests
from kvplan_operator.kube.resources import DEPLOYMENTS, NODES, PODS

SECRET_NAME, SECRET_KEY, SECRET_BYTES = "kvplan-hash-secret", "hash-secret", 32
"""As the routers of ``manifests/router`` mount it."""


def init(
    namespace: NamespaceOption = "",
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    prometheus: PrometheusOption = "",
    secret: Annotated[
        bool, typer.Option("--secret", help="Add a fresh Secret for the routers' key hash; keep it out of git.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(parser=given_path, metavar="PATH", help="File, replaced as a whole. Absent: stdout.")
    ] = None,
) -> None:
    """Draft a fleet and a class from the vLLM Deployments that run in a namespace."""
    check_file_target("--out", out)

    async def job(session: Session) -> tuple[str, tuple[Draft, ...]]:
        found = await _servers(session)
        traffic = await _traffic(prometheus, session.namespace, found) if prometheus else {}
        return session.namespace, drafts(found, traffic, session.namespace)

    where, made = in_cluster(Place(namespace, kubeconfig, context), job)
    texts = [draft.text for draft in made]
    if secret:
        texts.append(yaml_documents([_secret(where)]))
    text = "---\n".join(texts)
    load_manifests(read_yaml(text, "draft"))
    _write(text, out)


async def _servers(session: Session) -> tuple[Server, ...]:
    """The servers; raises where there is none."""
    client = session.client
    deployments = (await client.list(DEPLOYMENTS, session.namespace)).items
    pods = (await client.list(PODS, session.namespace)).items
    found, remarks = servers(deployments, pods, (await client.list(NODES)).items)
    for remark in remarks:
        note(remark)
    if not found:
        subject = f"namespace {session.namespace}"
        remedy = "choose another with -n; manifests/samples holds fleets whose engines kvplan creates"
        raise CommandError(subject, "no Deployment that runs vLLM can be read", remedy)
    return found


async def _traffic(url: str, namespace: str, found: Sequence[Server]) -> dict[str, Traffic]:
    traffic = {}
    for model in {server.model for server in found}:
        queries = traffic_queries(namespace, [server for server in found if server.model == model])
        traffic[model] = traffic_of(await answers_of(url, queries), url, time.time())
    return traffic


def _secret(namespace: str) -> dict[str, object]:
    value = base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
    metadata = {"name": SECRET_NAME, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": {SECRET_KEY: value}}


def _write(text: str, out: Path | None) -> None:
    if out is None:
        sys.stdout.write(text)
        return
    try:
        [written] = write_all(out.parent, {out.name: text})
    except OSError as error:
        raise CommandError("--out", f"{out} cannot be written ({reason_of(error)})", "give another file") from error
    note(f"wrote {written}")
