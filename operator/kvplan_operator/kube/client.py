"""The API server as dictionaries: read, list, create, apply, patch, replace, delete, watch.

Inputs: a ``Resource`` and plain objects. Outputs: plain objects, or a ``KubeError`` that says what can be done.
Typed models are not used: they drop the fields they do not know. Only reads and answers of 429 are tried again, a few
times; a write whose outcome is unknown is the caller's to look at. A late write is refused only if its object carries
``metadata.resourceVersion`` (or the call a uid): the API server checks nothing else.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from kvplan_operator.api.labels import FIELD_MANAGER
from kvplan_operator.kube import request as to_request
from kvplan_operator.kube.access import SERVICE_ACCOUNT, Access
from kvplan_operator.kube.answers import Event, Listing, Object, Project, events, typed, whole
from kvplan_operator.kube.backoff import Backoff
from kvplan_operator.kube.errors import Expired, NotFound, NotServed, Throttled, Unavailable
from kvplan_operator.kube.fence import Fence
from kvplan_operator.kube.request import Request
from kvplan_operator.kube.resources import Resource
from kvplan_operator.kube.transport import Transport

PAGE: Final = 500
"""Objects per page of a list."""
WATCH_SECONDS: Final = 300.0
SILENCE_SECONDS: Final = 90.0
"""The API server sends a bookmark each minute, so a longer silence means a dead connection, or a kind of which nothing
has changed since the API server started: those get none."""
_TRIES = 4
_PAUSE = Backoff(first_seconds=0.2, most_seconds=2.0)
_LONGEST_PAUSE_SECONDS = 10.0


class Client:
    """One user of the API server; to be closed, except those that ``fenced`` made."""

    def __init__(
        self, transport: Transport, fence: Fence | None = None, rng: Callable[[], float] = random.random
    ) -> None:
        self._transport, self._fence, self._rng = transport, fence, rng

    @classmethod
    async def connect(
        cls, kubeconfig: Path | None = None, context: str | None = None, account: Path = SERVICE_ACCOUNT
    ) -> "Client":
        """A client by a kubeconfig, or by the pod's service account where none is given; asks nothing yet.

        Raises:
            Refused: when there are no credentials.
        """
        return cls(await Transport.open(Access(kubeconfig, context, account)))

    async def close(self) -> None:
        """Close all connections, those of fenced clients too."""
        await self._transport.close()

    def fenced(self, fence: Fence) -> "Client":
        """A client over the same connections whose writes raise ``LeadershipLost`` unless the fence holds."""
        return Client(self._transport, fence, self._rng)

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Object:
        """Read an object.

        Raises:
            KubeError: as ``errors`` draws them; so for all other calls.
        """
        return await self._ask(to_request.reading(resource, namespace, name))

    async def find(self, resource: Resource, namespace: str | None, name: str) -> Object | None:
        """Read an object that may not be there; a kind that is not served is an error."""
        try:
            return await self.get(resource, namespace, name)
        except NotServed:
            raise
        except NotFound:
            return None

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        fields: str | None = None,
        limit: int = PAGE,
        project: Project = whole,
    ) -> Listing:
        """A whole list, read in pages; each page is projected before the next is read, so that memory stays small.

        Args:
            resource: kind.
            namespace: None for all.
            labels: label selector.
            fields: field selector.
            limit: objects per page, 0 for one page.
            project: what to keep of each object.
        """
        request = to_request.listing(resource, namespace, labels, fields)
        try:
            return await self._pages(request, resource, limit, project)
        except Expired:
            # The pages took longer than the API server remembers: one page cannot.
            return await self._pages(request, resource, 0, project)

    async def create(
        self, resource: Resource, document: Mapping[str, Any], *, manager: str = FIELD_MANAGER, dry_run: bool = False
    ) -> Object:
        """Create an object."""
        return await self._ask(to_request.creating(resource, document, manager, dry_run))

    async def apply(
        self,
        resource: Resource,
        document: Mapping[str, Any],
        *,
        manager: str = FIELD_MANAGER,
        force: bool = False,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Server-side apply: what the document names becomes ours; what it no longer names goes if only we had it.

        Args:
            resource: kind.
            document: with apiVersion, kind and name; with resourceVersion it is refused once the object changed,
                with uid once it is another object.
            manager: of its fields.
            force: take fields from other managers.
            subresource: such as ``status``.
            dry_run: write nothing.

        Raises:
            FieldConflict: without force, when others own fields that would change.
        """
        return await self._ask(to_request.applying(resource, document, manager, force, subresource, dry_run))

    async def merge_patch(
        self,
        resource: Resource,
        document: Mapping[str, Any],
        *,
        manager: str = FIELD_MANAGER,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Merge a document into an object: null removes a field, a list is replaced.

        The document carries the name, and resourceVersion or uid as in ``apply``.
        """
        return await self._ask(to_request.merging(resource, document, manager, subresource, dry_run))

    async def replace(
        self, resource: Resource, document: Mapping[str, Any], *, manager: str = FIELD_MANAGER, dry_run: bool = False
    ) -> Object:
        """Write a whole object; it should carry the version that was read."""
        return await self._ask(to_request.replacing(resource, document, manager, dry_run))

    async def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str | None = None,
    ) -> None:
        """Delete an object; one that is not there is no error.

        Args:
            resource: kind.
            namespace: of the object.
            name: of the object.
            uid: delete that one only, else ``Gone``.
            resource_version: delete that version only, else ``Conflict``.
            propagation: Foreground, Background or Orphan.
        """
        try:
            await self._ask(to_request.deleting(resource, namespace, name, uid, resource_version, propagation))
        except NotServed:
            raise
        except NotFound:
            return

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str,
        labels: str | None = None,
        fields: str | None = None,
        seconds: float = WATCH_SECONDS,
        silence_seconds: float = SILENCE_SECONDS,
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """Follow a collection from a version on: a block with events, which end when the server ends the watch.

        Args:
            resource: kind.
            namespace: None for all.
            resource_version: of a list or of an event.
            labels: label selector.
            fields: field selector.
            seconds: after which the server ends it.
            silence_seconds: without a word for so long, the connection counts as dead.

        Raises:
            Expired: from the iterator, when the version is too old.
            Unavailable: from the iterator, when the connection breaks or is silent.
        """
        request = to_request.watching(resource, namespace, resource_version, labels, fields, seconds, silence_seconds)
        async with self._transport.follow(request) as lines:
            yield events(request.what, lines)

    async def _pages(self, request: Request, resource: Resource, limit: int, project: Project) -> Listing:
        items: list[Any] = []
        following: str | None = None
        while True:
            asked = {"limit": str(limit) if limit else None, "continue": following}
            page = await self._ask(replace(request, query={**request.query, **asked}))
            items += [project(typed(item, resource)) for item in page["items"]]
            following = page["metadata"].get("continue")
            if not following:
                return Listing(tuple(items), page["metadata"]["resourceVersion"])

    async def _ask(self, request: Request) -> Object:
        """Ask, and ask again where that cannot do harm."""
        for failures in range(1, _TRIES):
            try:
                return await self._once(request)
            except Throttled as error:
                pause = error.retry_after_seconds
            except Unavailable:
                if request.writes:
                    raise
                pause = 0.0
            await asyncio.sleep(min(_LONGEST_PAUSE_SECONDS, pause + _PAUSE.seconds(failures, self._rng)))
        return await self._once(request)

    async def _once(self, request: Request) -> Object:
        answer: Object = await self._transport.ask(request, self._fence)
        return answer
