"""The Node of an agent: registered, Ready, its Lease renewed.

Inputs: the Node as it is to be. Outputs: objects on the API server. A Node that is there already keeps its labels and
taints (a node may not change them) and gets the status.
"""

import asyncio
import logging

from e2e.agent import clock
from e2e.agent.api import Api, Object
from e2e.agent.errors import AgentError, Refused
from e2e.agent.settings import Settings

_CONFLICT, _NOT_FOUND = 409, 404
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")
_LOG = logging.getLogger(__name__)


async def register(api: Api, node: Object) -> None:
    """Create the Node, or take over the one that is there, and make it Ready."""
    try:
        await api.create("/api/v1/nodes", node)
    except Refused as refused:
        if refused.status != _CONFLICT:
            raise
    await _report(api, node)


async def keep_alive(api: Api, node: Object, settings: Settings) -> None:
    """Renew the Lease and the Ready condition until cancelled; a failure is tried again at the next turn."""
    while True:
        try:
            await _renew(api, node["metadata"]["name"], settings)
            await _report(api, node)
        except AgentError as error:
            _LOG.warning("%s", error)
        await asyncio.sleep(settings.renew_seconds)


async def _renew(api: Api, name: str, settings: Settings) -> None:
    spec = {"holderIdentity": name, "leaseDurationSeconds": settings.lease_seconds, "renewTime": clock.now_exactly()}
    try:
        await api.patch(f"{_LEASES}/{name}", {"spec": spec})
    except Refused as refused:
        if refused.status != _NOT_FOUND:
            raise
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}
        await api.create(_LEASES, lease)


async def _report(api: Api, node: Object) -> None:
    name = node["metadata"]["name"]
    path = f"/api/v1/nodes/{name}"
    current = {each["type"]: each for each in (await api.get(path)).get("status", {}).get("conditions", [])}
    conditions = [_condition("Ready", True, "KubeletReady", current)]
    conditions += [_condition(kind, False, f"KubeletHasNo{kind}", current) for kind in _PRESSURES]
    await api.patch(f"{path}/status", {"status": {**node["status"], "conditions": conditions, **_information(name)}})


def _condition(kind: str, holds: bool, reason: str, current: dict[str, Object]) -> Object:
    now, status = clock.now(), str(holds)
    old = current.get(kind, {})
    since = old["lastTransitionTime"] if old.get("status") == status else now
    heard = {"lastHeartbeatTime": now, "lastTransitionTime": since}
    return {"type": kind, "status": status, "reason": reason, "message": "the bed's agent runs", **heard}


def _information(name: str) -> Object:
    unknown = dict.fromkeys(("kernelVersion", "osImage", "kubeProxyVersion"), "process")
    identity = dict.fromkeys(("machineID", "systemUUID", "bootID"), name)
    versions = {"kubeletVersion": "bed-agent", "containerRuntimeVersion": "process://1"}
    addresses = [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}]
    info = {"architecture": "amd64", "operatingSystem": "linux", **unknown, **identity, **versions}
    return {"addresses": addresses, "nodeInfo": info}
