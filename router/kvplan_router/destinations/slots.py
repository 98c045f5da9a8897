"""The index's slots as places: which are ready, and what the Envoy beside us must know of them. Pure.

In: an index document, what the cluster or a probe says. Out: ready slots, endpoints. Must not ask anybody.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kvplan_router.envoy.endpoints import Endpoint, Status


@dataclass(frozen=True)
class Place:
    """One slot that has an address.

    Attributes:
        slot: its name.
        address: ``ip:port`` of its pod.
        pod_uid: of its pod, "" where the index does not say.
        serving: whether the plan sends it new requests.
    """

    slot: str
    address: str
    pod_uid: str
    serving: bool


def places_of(document: Mapping[str, Any]) -> tuple[Place, ...]:
    """The slots that can be reached."""
    return tuple(
        Place(slot["slot"], slot["address"], slot.get("podUID", ""), slot["state"] == "serving")
        for slot in document["slots"]
        if slot["state"] != "gone" and slot.get("address")
    )


@dataclass(frozen=True)
class Readiness:
    """Who takes requests.

    Attributes:
        pods: uids of ready pods; None where nobody says.
        silent: addresses that did not answer the last probe; None where nobody probes. One that was not probed yet is
            ready if the index says that it serves: routes move to it the moment it is listed.
    """

    pods: frozenset[str] | None = None
    silent: frozenset[str] | None = None

    def of(self, place: Place) -> bool:
        """Whether a place takes requests, as far as is known."""
        pod_ready = self.pods is None or not place.pod_uid or place.pod_uid in self.pods
        return pod_ready and place.address not in (self.silent or ())

    def slots(self, places: Iterable[Place]) -> frozenset[str] | None:
        """The ready slots; None where nothing is known of any."""
        if self.pods is None and self.silent is None:
            return None
        return frozenset(place.slot for place in places if self.of(place))


def endpoints_of(places: Iterable[Place], readiness: Readiness) -> frozenset[Endpoint]:
    """What Envoy is told; a place whose address is no ``ip:port`` cannot be told."""
    known = ((_endpoint(place.address), place) for place in places)
    return frozenset(Endpoint(*address, _status(place, readiness)) for address, place in known if address is not None)


def _status(place: Place, readiness: Readiness) -> Status:
    if not place.serving:
        return Status.DRAINING
    return Status.HEALTHY if readiness.of(place) else Status.UNHEALTHY


def _endpoint(address: str) -> tuple[str, int] | None:
    host, _, port = address.rpartition(":")
    try:
        return str(ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))), int(port)
    except ValueError:
        return None
