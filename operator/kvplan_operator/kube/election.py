"""Who may lead: decisions about a coordination.k8s.io/v1 Lease as values.

Inputs: the Lease as read, the local clock, the identity of this process. Outputs: when the Lease may be taken, and the
Lease to write. Pure: no clock, no I/O.

Why never two may write at once: a leader may write for ``renew_seconds`` from the moment *before* it sent the renewal;
another takes the Lease only after it has seen the same version for ``duration_seconds``, counted from *after* that
renewal was stored. Both count on their own clock, so only its rate matters: the difference of the two numbers is the
margin, for drift and for a write on its way. Times in the Lease are for people; nobody decides by them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvplan_operator.kube.resources import LEASES

Lease = Mapping[str, Any]


@dataclass(frozen=True)
class Timing:
    """How long things last.

    Attributes:
        duration_seconds: without a renewal, until others may take the Lease.
        renew_seconds: without a renewal, until the holder stops writing.
        retry_seconds: between renewals.
    """

    duration_seconds: float = 15.0
    renew_seconds: float = 10.0
    retry_seconds: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.retry_seconds < self.renew_seconds < self.duration_seconds:
            raise ValueError(f"{self}: write 0 < retry < renew < duration, such as 2, 10 and 15")


@dataclass(frozen=True)
class Sighting:
    """The Lease as last seen.

    Attributes:
        lease: as read; None where there is none.
        free_at: from when on it may be taken, if it does not change, by the local clock.
    """

    lease: Lease | None
    free_at: float


def see(before: Sighting | None, lease: Lease | None, identity: str, now: float, timing: Timing) -> Sighting:
    """What is known after one more look at the Lease.

    Args:
        before: what was known.
        lease: as read just now; None where there is none.
        identity: of this process, and of no other.
        now: by the local clock, taken after the look.
        timing: of this process; the Lease's own duration counts if it is longer.
    """
    if before is not None and _version(before.lease) == _version(lease):
        return before
    if lease is None:
        # Whoever held a Lease that was deleted may write until its time is over.
        return Sighting(None, now if before is None else now + timing.duration_seconds)
    if holder(lease) in {"", identity}:
        return Sighting(lease, now)
    own = float(_spec(lease).get("leaseDurationSeconds") or 0)
    return Sighting(lease, now + max(own, timing.duration_seconds))


def claimed(lease: Lease | None, namespace: str, name: str, identity: str, stamp: str, timing: Timing) -> Lease:
    """The Lease to write in order to lead, in a term of its own."""
    spec = {
        "holderIdentity": identity,
        "leaseDurationSeconds": round(timing.duration_seconds),
        "acquireTime": stamp,
        "renewTime": stamp,
        "leaseTransitions": term(lease) + 1,
    }
    if lease is not None:
        return {**lease, "spec": {**_spec(lease), **spec}}
    metadata = {"namespace": namespace, "name": name}
    return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}


def renewed(lease: Lease, stamp: str) -> Lease:
    """The Lease to write in order to go on leading."""
    return {**lease, "spec": {**_spec(lease), "renewTime": stamp}}


def released(lease: Lease, stamp: str) -> Lease:
    """The Lease to write in order to let another lead at once."""
    return {**lease, "spec": {**_spec(lease), "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": stamp}}


def holder(lease: Lease | None) -> str:
    """Who leads; empty for nobody."""
    return str(_spec(lease).get("holderIdentity") or "")


def term(lease: Lease | None) -> int:
    """Number of the leadership: it grows whenever a Lease is taken."""
    return int(_spec(lease).get("leaseTransitions") or 0)


def _spec(lease: Lease | None) -> Mapping[str, Any]:
    return (lease or {}).get("spec") or {}


def _version(lease: Lease | None) -> str | None:
    return None if lease is None else str(lease["metadata"]["resourceVersion"])
