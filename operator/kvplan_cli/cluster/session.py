"""A conversation with one cluster, from the options of a command to its end.

Inputs: a ``Place`` and a job. Output: what the job returns. The event loop begins and ends here; whatever the API
server refuses becomes one message with a remedy (``refusals``). The client library is loaded only now: the commands
that read files work without it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from kvplan_cli.cluster.kubeconfig import Access, access_of
from kvplan_cli.cluster.place import Place
from kvplan_cli.cluster.refusals import as_command_error
from kvplan_cli.errors import MissingExtra
from kvplan_operator.kube.errors import KubeError, Refused

if TYPE_CHECKING:
    from kvplan_operator.kube.client import Client
    from kvplan_operator.kube.request import Request
    from kvplan_operator.kube.transport import Transport

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Session:
    """An open conversation.

    Attributes:
        client: reads and writes objects.
        namespace: that the command is about.
        transport: for what is no object, such as a pod's own answers.
    """

    client: "Client"
    namespace: str
    transport: "Transport"

    async def ask(self, request: "Request") -> Any:
        """The JSON answer to a request that is not about an object."""
        return await self.transport.ask(request)


def in_cluster(place: Place, job: Callable[[Session], Awaitable[T]]) -> T:
    """Run a job on the cluster of a place.

    Raises:
        CommandError: no kubeconfig, or whatever the API server refused and the job did not catch.
        MissingExtra: the client library is not installed.
    """
    access = access_of(place)
    try:
        return asyncio.run(_converse(access, job))
    except KubeError as error:
        raise as_command_error(error) from None


async def _converse(access: Access, job: Callable[[Session], Awaitable[T]]) -> T:
    try:
        from kvplan_operator.kube import client, transport  # noqa: PLC0415  loads the client library, an extra
        from kvplan_operator.kube.access import Access as ClientAccess  # noqa: PLC0415  the same
    except ImportError:
        raise MissingExtra("cluster", "the Kubernetes client", "operator") from None
    try:
        opened = await transport.Transport.open(ClientAccess(access.kubeconfig, access.context))
    except (KeyError, TypeError, ValueError) as error:  # what the library makes of a file that lacks parts
        raise Refused(f"no access to the API server by {access.kubeconfig}: {error!r}") from None
    connected = client.Client(opened)
    try:
        return await job(Session(connected, access.namespace, opened))
    finally:
        await connected.close()
