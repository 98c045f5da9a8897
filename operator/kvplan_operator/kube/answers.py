"""What the API server answers besides single objects: lists, and the events of a watch.

Inputs: parsed pages, lines. Outputs: ``Listing`` and ``Event``. Must not do I/O.
"""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from kvplan_operator.kube.errors import Unavailable, refusal
from kvplan_operator.kube.resources import Resource

Object = dict[str, Any]
Project = Callable[[Object], Any]
"""What to keep of an object."""


@dataclass(frozen=True)
class Listing:
    """A whole list at one version.

    Attributes:
        items: its objects, or what they were projected to.
        resource_version: from which a watch goes on.
    """

    items: tuple[Any, ...]
    resource_version: str


@dataclass(frozen=True)
class Event:
    """One event of a watch: ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    object: Object


def whole(item: Object) -> Object:
    """Keep all of an object."""
    return item


def typed(item: Object, resource: Resource) -> Object:
    """An item of a list with the type that the API server leaves out there, but not in events and single objects."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, **item}


async def events(what: str, lines: AsyncIterator[bytes]) -> AsyncIterator[Event]:
    """Events from the lines of a watch.

    Raises:
        KubeError: what an ERROR event means; an expired watch is HTTP 200 and such an event.
    """
    async for line in lines:
        try:
            event = json.loads(line)
        except ValueError as error:
            raise Unavailable(f"{what}: an event was cut off") from error
        if event["type"] == "ERROR":
            raise refusal(what, int(event["object"].get("code") or 500), event["object"])
        yield Event(event["type"], event["object"])
