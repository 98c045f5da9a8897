"""What pods and services say of themselves, asked through the API server: a command seldom reaches them directly.

Inputs: a session, names. Outputs: JSON. Needs ``get`` on ``pods/proxy`` and ``services/proxy``.
"""

import json
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from kvplan_cli.cluster.session import Session
from kvplan_cli.doctor.findings import Unknown
from kvplan_operator.kube.request import Request
from kvplan_operator.model.engine_pods import ENGINE_PORT
from kvplan_solver.cacheroute.router_state import RouterReport, read_state

ROUTER_PORT = 9090
ANSWER_SECONDS = 5.0


async def router_state(session: Session, pod: str) -> RouterReport:
    """What a router says.

    Raises:
        KubeError: it does not answer.
        InvalidInput: its answer is no router state.
    """
    return read_state(json.dumps(await _get(session, "pods", f"{pod}:{ROUTER_PORT}", "state")))


async def engine_version(session: Session, pod: str) -> str | Unknown:
    """The vLLM version that an engine says.

    Raises:
        KubeError: it does not answer.
    """
    answer = await _get(session, "pods", f"{pod}:{ENGINE_PORT}", "version")
    version = answer.get("version") if isinstance(answer, dict) else None
    return version if isinstance(version, str) else Unknown("its answer names no version")


async def prometheus_answer(session: Session, url: str) -> str | None:
    """What a Prometheus behind a Service of the cluster answers, in words; None for any other address.

    Raises:
        KubeError: it does not answer.
    """
    target = urlsplit(url)
    host = (target.hostname or "").split(".")
    if len(host) < 3 or host[2] != "svc":
        return None
    scheme = f"{target.scheme}:" if target.scheme == "https" else ""
    service, namespace = f"{scheme}{host[0]}:{target.port or (443 if scheme else 80)}", host[1]
    query = f"{target.path.strip('/')}/api/v1/query?{urlencode({'query': 'vector(1)'})}".lstrip("/")
    answer = await _get(session, "services", service, query, namespace)
    answers = isinstance(answer, dict) and answer.get("status") == "success"
    return f"{url} answers" if answers else f"{url} answers, but not as a Prometheus"


async def _get(session: Session, plural: str, name: str, path: str, namespace: str = "") -> Any:
    place = f"/api/v1/namespaces/{quote(namespace or session.namespace, safe='')}/{plural}/{quote(name, safe=':')}"
    what = f"ask {plural.removesuffix('s')} {name} for /{path.partition('?')[0]}"
    return await session.ask(Request(what, "GET", f"{place}/proxy/{path}", answer_seconds=ANSWER_SECONDS))
