"""Following a fleet until its accepted plan is in force, or only a person can go on.

Inputs: the fleet as written, the plan's digest. Outputs: lines on stderr as the state changes, an ``End``. Waits on the
API server's watch; a watch that breaks is begun again from a fresh read, so that no change is missed.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from kvplan_cli.cluster.reading import Object
from kvplan_cli.cluster.session import Session
from kvplan_cli.errors import CommandError
from kvplan_operator.api.conditions import ConditionType
from kvplan_operator.kube.errors import Expired, Unavailable
from kvplan_operator.kube.resources import SERVING_FLEETS
from kvplan_operator.model.pods import part, parts


@dataclass(frozen=True)
class End:
    """How it ended.

    Attributes:
        done: whether the plan is in force.
        message: why, a line.
    """

    done: bool
    message: str


async def follow(
    session: Session, fleet: Object, digest: str, say: Callable[[str], None], seconds: float | None
) -> End:
    """Wait for the end.

    Args:
        session: of the fleet's cluster.
        fleet: as it was written.
        digest: that was accepted.
        say: told each new state.
        seconds: after which to give up; None: never.
    """
    versions, said = _versions(session, fleet["metadata"]), ""
    try:
        async with asyncio.timeout(seconds):
            while True:
                seen = await anext(versions)
                end = end_of(seen, fleet["metadata"]["generation"], digest)
                if end is not None:
                    return end
                if state_of(seen) != said:
                    said = state_of(seen)
                    say(said)
    except TimeoutError:
        return End(False, f"not in force after {seconds:g} s; last seen: {said or 'nothing'}")


def end_of(fleet: Object, generation: int, digest: str) -> End | None:
    """Whether the operator is done with this generation of the fleet; None while it is not."""
    status = part(fleet, "status")
    ready, stalled = _condition(fleet, ConditionType.READY), _condition(fleet, ConditionType.STALLED)
    if status.get("observedGeneration", -1) < generation:
        return None
    if stalled.get("status") == "True":
        return End(False, f"stalled: {_words(stalled)}")
    if ready.get("status") != "True":
        return None
    in_force = part(status, "currentPlan").get("digest") == digest
    return End(in_force, f"ready: {_words(ready)}" if in_force else f"ready, but not in force: {_words(ready)}")


def state_of(fleet: Object) -> str:
    """What is going on, a line."""
    status = part(fleet, "status")
    if not parts(status, "conditions"):
        return "no status yet: does an operator run? (kvplan doctor)"
    if status.get("observedGeneration", -1) < fleet["metadata"]["generation"]:
        return "the operator has not looked at it yet"
    reconciling = _condition(fleet, ConditionType.RECONCILING)
    if reconciling.get("status") == "True":
        return f"reconciling: {_words(reconciling)}"
    return f"not ready: {_words(_condition(fleet, ConditionType.READY))}"


async def _versions(session: Session, metadata: Object) -> AsyncIterator[Object]:
    """Every version of the fleet from now on.

    Raises:
        CommandError: it was deleted, or another one has its name.
    """
    client, namespace, name = session.client, metadata["namespace"], metadata["name"]
    while True:
        seen = await client.get(SERVING_FLEETS, namespace, name)
        if seen["metadata"]["uid"] != metadata["uid"]:
            raise _gone(name)
        yield seen
        try:
            async with client.watch(
                SERVING_FLEETS,
                namespace,
                resource_version=seen["metadata"]["resourceVersion"],
                fields=f"metadata.name={name}",
            ) as events:
                async for event in events:
                    if event.type == "DELETED":
                        raise _gone(name)
                    if event.type != "BOOKMARK":
                        yield event.object
        except (Expired, Unavailable):
            continue  # read again: a server that is down is told by that read


def _gone(name: str) -> CommandError:
    return CommandError(f"ServingFleet {name}", "it was deleted meanwhile", "apply it again, then accept a plan")


def _condition(fleet: Object, type_: ConditionType) -> Any:
    found = (c for c in parts(part(fleet, "status"), "conditions") if c.get("type") == type_.value)
    return next(found, {})


def _words(condition: Any) -> str:
    return f"{condition.get('reason')}, {condition.get('message')}"
