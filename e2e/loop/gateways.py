"""Where clients send requests: the Envoys of router pods that are Ready and not on their way out.

Inputs: a client of the API server. Outputs: URLs, round and round. It plays the part of a Service, which the bed does
not have; like kube-proxy it learns of a pod's end by a watch and a moment late.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from e2e.loop.beside import beside
from e2e.loop.manifests import GATEWAY_PORT
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.reflector import Reflector
from kvplan_operator.kube.resources import PODS

ROUTERS = "app.kubernetes.io/name=kvplan-router"


class Gateways:
    """The Envoys that take requests."""

    def __init__(self, pods: "Reflector[Any]") -> None:
        self._pods, self._turn = pods, count()

    def next(self) -> str:
        """URL of the next one.

        Raises:
            LookupError: there is none.
        """
        found = self.urls()
        if not found:
            raise LookupError("no router pod is Ready")
        return found[next(self._turn) % len(found)]

    def urls(self) -> list[str]:
        """All of them."""
        serving = sorted(pod["status"]["podIP"] for pod in self._pods.objects.values() if _serves(pod))
        return [f"http://{address}:{GATEWAY_PORT}" for address in serving]


@asynccontextmanager
async def following(client: Client, namespace: str) -> AsyncIterator[Gateways]:
    """The gateways of a namespace, kept up to date."""
    pods: Reflector[Any] = Reflector(client, PODS, namespace=namespace, labels=ROUTERS)
    async with beside(pods.run()):
        await pods.synced.wait()
        yield Gateways(pods)


def _serves(pod: Any) -> bool:
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", ()))
    return ready and "deletionTimestamp" not in pod["metadata"]
