"""Which routers Prometheus sees, held against those that live: what makes rates stale or partial.

Inputs: the fleet, pods from the watches, the newest sample per router pod. Output: a frozen ``Sight``. A counter's rate
over ten minutes looks alive long after the scrape died, therefore the age of the newest sample decides. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.model.fleet_queries import Ask
from kvplan_operator.model.instants import instant_or_zero
from kvplan_operator.model.pods import (
    Object,
    is_ready,
    is_terminal,
    is_terminating,
    labels_of,
    name_of,
    part,
    ready_condition,
)
from kvplan_operator.model.replies import Replies
from kvplan_operator.model.selectors import selects

STALE_AFTER_SECONDS = 150
"""Age of the newest sample from which it is stale: two missed scrapes at the usual longest interval, a minute."""
SETTLING_SECONDS = 150
"""Time a new router may take until it is scraped."""
_NAMED = 3
"""Routers that a message names."""


@dataclass(frozen=True)
class Sight:
    """What can be said of the routers' series.

    Attributes:
        unusable: why no rate can be told from them; empty where one can.
        lacking: which routers are missing in them; empty where none is.
        seen: time of the newest sample, seconds since the epoch.
    """

    unusable: str
    lacking: str
    seen: float


def staying_routers(fleet: ServingFleet, pods: Sequence[Object]) -> tuple[Object, ...]:
    """Pods of the fleet's namespace that ``routing.routers.selector`` matches and that were not told to go."""
    selector = fleet.spec.routing.routers.selector
    return tuple(
        pod
        for pod in pods
        if part(pod, "metadata").get("namespace", "default") == fleet.metadata.namespace
        and selects(selector, labels_of(pod))
        and not (is_terminal(pod) or is_terminating(pod))
    )


def live_routers(fleet: ServingFleet, pods: Sequence[Object]) -> tuple[Object, ...]:
    """Those of them that are Ready."""
    return tuple(pod for pod in staying_routers(fleet, pods) if ready_since(pod) is not None)


def ready_since(pod: Object) -> float | None:
    """When the pod became Ready, seconds since the epoch, 0 where it does not say when; None while it is not."""
    return instant_or_zero(str(ready_condition(pod).get("lastTransitionTime") or "")) if is_ready(pod) else None


def router_sight(fleet: ServingFleet, pods: Sequence[Object], replies: Replies) -> Sight:
    """What the routers' series are worth now."""
    ages = {s.labels.get("pod", ""): s.evaluated - s.value for s in replies.answer(Ask.ROUTERS_SEEN).finite}
    seen = replies.now - max(0.0, min(ages.values(), default=0.0))
    return Sight(_unusable(fleet, ages, replies), _lacking(fleet, pods, ages, replies.now), seen)


def _unusable(fleet: ServingFleet, ages: dict[str, float], replies: Replies) -> str:
    trouble = replies.trouble(Ask.ROUTERS_SEEN, Ask.ROUTER_SUMS, Ask.COUNTED_SINCE)
    if trouble:
        return trouble
    name = f"{fleet.metadata.namespace}/{fleet.metadata.name}"
    if not ages:
        return f'no router series with fleet="{name}": start a router for the fleet and scrape it'
    newest = min(ages.values())
    if newest > STALE_AFTER_SECONDS:
        return f'the newest router sample with fleet="{name}" is older than {STALE_AFTER_SECONDS} s: check the scrape'
    return ""


def _lacking(fleet: ServingFleet, pods: Sequence[Object], ages: dict[str, float], now: float) -> str:
    """Live routers without a recent sample; unknown where the series do not carry the label ``pod``."""
    if "" in ages:
        return ""
    recent = {name for name, age in ages.items() if age <= STALE_AFTER_SECONDS}
    settled = (pod for pod in live_routers(fleet, pods) if now - (ready_since(pod) or 0.0) > SETTLING_SECONDS)
    missing = sorted({name_of(pod) for pod in settled} - recent)
    if not missing:
        return ""
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    return f"no recent sample of router {', '.join(missing[:_NAMED])}{more}"
