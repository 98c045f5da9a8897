"""The index document without its keys: class rules, policies, grids, slots and shares (09-contracts "Index").

Inputs: the snapshot, the plan in force or none, slots, shares, the index in force. Output: the head that the table
encoder completes. Without a plan it is ``observe``: rules and grids, so that rates exist to plan from, and nothing
overrides routing. With one, classes that are newer than the plan have rules and no routes. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.model.problem import belongs
from kvplan_operator.model.snapshot import Snapshot
from kvplan_operator.plan.class_routing import queue, shed
from kvplan_operator.plan.index_head import TableVersion, class_policy, class_rules, common_head, plan_told
from kvplan_operator.plan.planned import Planned
from kvplan_operator.route.routes import routes_in_force
from kvplan_operator.route.share_round import Shares
from kvplan_operator.route.slots import PublishedSlot, SlotState

PROMPT = "reservedPromptTokens"
LONGEST_PROMPT = 1_048_576
"""Tokens of a prompt where neither class nor model bounds it."""
STEADY_QUEUE = 0.25
"""Relative change of a queue's length that is not worth a new index: it follows a measured rate."""

Document = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Head:
    """What an index is made of besides its keys.

    Attributes:
        version: epoch and generation.
        fingerprint: of the routers' hash secret.
        slots: destinations.
        shares: of the budgets.
        before: the index in force; None before the first.
    """

    version: TableVersion
    fingerprint: str
    slots: tuple[PublishedSlot, ...]
    shares: Shares
    before: Document | None


def observe_document(snapshot: Snapshot, head: Head) -> dict[str, Any]:
    """Rules and grids only."""
    rules = class_rules(selected_classes(snapshot), snapshot.fleet)
    classes = [found | unplanned_policy(request_class, snapshot) for request_class, found in rules]
    return _common(snapshot, head) | {"mode": "observe", "classes": classes}


def plan_document(snapshot: Snapshot, planned: Planned, head: Head) -> dict[str, Any]:
    """The plan's policies on the groups that serve."""
    plans = {class_plan.name: class_plan for class_plan in planned.plan.spec.classes}
    known = {entry["name"]: entry for entry in (head.before or {"classes": []})["classes"]}
    serving = [slot.configuration for slot in head.slots if slot.state is SlotState.SERVING]
    routes = routes_in_force(planned, head.before, serving)
    classes = []
    for request_class, found in class_rules(selected_classes(snapshot), snapshot.fleet):
        name = request_class.metadata.name
        if name in plans:
            policy = class_policy(request_class, plans[name], planned)
            steady = _steady_queue(request_class, policy["queue"], known.get(name))
            mixed = _with_routes(policy, routes[name], known.get(name))
            classes.append(found | mixed | {"queue": steady})
        else:
            classes.append(found | unplanned_policy(request_class, snapshot))
    return _common(snapshot, head) | {
        "mode": "plan",
        **plan_told(planned),
        "classes": classes,
    }


def selected_classes(snapshot: Snapshot) -> tuple[RequestClass, ...]:
    """The classes that belong to the fleet."""
    return tuple(c for c in snapshot.classes if belongs(c, snapshot.fleet))


def largest_reservations(planned: Planned | None) -> dict[str, int]:
    """Largest R̃ by configuration, KV tokens; empty without a plan."""
    plans = planned.plan.spec.classes if planned else ()
    return _largest((route.configuration, route.reservation_tokens) for plan in plans for route in plan.routes)


def published_reservations(document: Document) -> dict[str, int]:
    """Largest R̃ by configuration that an index names, KV tokens."""
    routes = (route for entry in document["classes"] for route in entry["routes"])
    return _largest((route["configuration"], route["reservationTokens"]) for route in routes)


def destinations(slots: Iterable[PublishedSlot], shares: Shares) -> dict[str, Any]:
    """Who may be sent to, and which router owns how much of it."""
    own = shares.by_slot
    entries = [slot.to_wire() | ({"routers": own[slot.name]} if slot.name in own else {}) for slot in slots]
    return {"routers": shares.routers, "slots": entries}


def _common(snapshot: Snapshot, head: Head) -> dict[str, Any]:
    return common_head(snapshot.fleet, head.fingerprint, head.version) | destinations(head.slots, head.shares)


def _largest(held: Iterable[tuple[str, int]]) -> dict[str, int]:
    largest: dict[str, int] = {}
    for configuration, tokens in held:
        largest[configuration] = max(largest.get(configuration, 0), tokens)
    return largest


def unplanned_policy(request_class: RequestClass, snapshot: Snapshot) -> dict[str, Any]:
    """What the index says of a class that no plan knows: it is recognised and counted, and goes nowhere special."""
    tokens = request_class.spec.tokens
    return {
        "routes": [],
        "admitMilli": 1000,
        "maxPromptTokens": tokens.input_max or snapshot.fleet.spec.model.max_model_len or LONGEST_PROMPT,
        "maxOutputTokens": tokens.max_output,
        "cachedPrefixTokens": 0,
        "queue": queue(request_class, 0),
        "shed": shed(request_class),
    }


def _with_routes(policy: Document, routes: Sequence[Document], before: Document | None) -> dict[str, Any]:
    """The policy with the routes in force; where one is of the plan before, no prompt beyond what that plan counted."""
    mixed: dict[str, Any] = {**policy, "routes": [dict(route) for route in routes]}
    planned = {(route["configuration"], route["reservationTokens"]) for route in policy["routes"]}
    if all((route["configuration"], route["reservationTokens"]) in planned for route in routes):
        return mixed
    prompt = min(mixed.pop(PROMPT, 0), (before or {}).get(PROMPT, 0))
    return mixed | ({PROMPT: prompt} if prompt else {})


def _steady_queue(request_class: RequestClass, wanted: Document, before: Document | None) -> Document:
    """A queue whose length follows a rate moves only with more than noise."""
    if before is None or request_class.spec.queue.max_length is not None:
        return wanted
    length, last = wanted["maxLength"], before["queue"]["maxLength"]
    return {**wanted, "maxLength": last} if abs(length - last) <= STEADY_QUEUE * last else wanted
