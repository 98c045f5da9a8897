"""The part of the routers' index that a plan decides: classes, slots, budgets, grids (09-contracts).

Inputs: a ``Planned``, the hash secret, epoch and generation. Output: the index document without its keys.
Pod addresses are not known here: whoever publishes the index adds them to the slots. Pure.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kvplan_operator.api.fleet_enums import RoutingMode
from kvplan_operator.api.request_class import HeaderMatch, Match, RequestClass
from kvplan_operator.api.routing_plan import ClassPlan, RoutingPlan
from kvplan_operator.plan.digest import plan_digest
from kvplan_operator.plan.engine_flags import TOKEN_GRID
from kvplan_operator.plan.planner import Planned
from kvplan_solver.cacheroute.keys import HASH_NAME, fingerprint

FULL_WEIGHT = 1000
LONGEST_DEADLINE = 3_600_000
LONGEST_QUEUE = 1_000_000


@dataclass(frozen=True)
class TableVersion:
    """Order of an index: a later (epoch, generation) replaces an earlier one.

    Attributes:
        epoch: creation time of the index object, seconds.
        generation: counts the tables of one epoch.
    """

    epoch: int = 0
    generation: int = 1


@dataclass(frozen=True)
class Slot:
    """A destination's identity: ``<configuration>-<n>``, stable over pods."""

    name: str
    configuration: str
    budget_tokens: int


def slots_of(plan: RoutingPlan) -> tuple[Slot, ...]:
    """All slots of a plan, by configuration and number."""
    return tuple(
        Slot(f"{group.configuration}-{n}", group.configuration, group.budget_tokens)
        for group in plan.spec.groups
        for n in range(group.replicas)
    )


def index_head(planned: Planned, secret: bytes, version: TableVersion) -> dict[str, Any]:
    """The index without keys.

    Raises:
        InvalidInput: the secret is too short or too long.
    """
    routing = planned.problem.fleet.spec.routing
    return {
        "epoch": version.epoch,
        "generation": version.generation,
        "mode": "plan" if routing.mode is RoutingMode.PLAN else "observe",
        "planDigest": plan_digest(planned.plan.spec),
        "hash": {"name": HASH_NAME, "fingerprint": fingerprint(secret)},
        "classes": list(_classes(planned)),
        "unmatched": routing.unmatched.value,
        "grids": {"promptTokens": list(TOKEN_GRID), "outputTokens": list(TOKEN_GRID)},
        "routers": [],
        "slots": [
            {
                "slot": slot.name, "configuration": slot.configuration, "budgetTokens": slot.budget_tokens,
                "weightMilli": FULL_WEIGHT, "state": "serving",
            }
            for slot in slots_of(planned.plan)
        ],
    }  # fmt: skip


def _classes(planned: Planned) -> Iterator[dict[str, Any]]:
    """In match order: descending priority, then name; one entry per model alias."""
    plans = {class_plan.name: class_plan for class_plan in planned.plan.spec.classes}
    rules = [{"kind": "header", "name": name} for name in planned.problem.fleet.spec.routing.key_headers]
    ordered = sorted(planned.problem.classes, key=lambda c: (-c.spec.priority, c.metadata.name))
    for request_class in ordered:
        for match in _matches(request_class.spec.match):
            yield {
                "name": request_class.metadata.name,
                "match": match,
                "keyRules": rules,
                **_policy(request_class, plans[request_class.metadata.name], planned),
            }


def _matches(match: Match) -> Iterator[dict[str, Any]]:
    headers = [_header(header) for header in match.headers]
    for model in match.models or (None,):
        found: dict[str, Any] = {"headers": headers} if headers else {}
        yield found | ({"model": model} if model else {})


def _header(header: HeaderMatch) -> dict[str, str]:
    condition = {"exact": header.exact} if header.exact is not None else {"prefix": header.prefix or ""}
    return {"name": header.name, **condition}


def _policy(request_class: RequestClass, class_plan: ClassPlan, planned: Planned) -> dict[str, Any]:
    milliseconds = request_class.spec.slo.latency_milliseconds
    tenant = {"tenant": request_class.spec.tenant} if request_class.spec.tenant else {}
    rate = next(c.arrival_rate for c in planned.instance.classes if c.name == class_plan.name)
    return tenant | {
        "routes": [route.to_wire() for route in class_plan.routes],
        "admitMilli": class_plan.admit_milli,
        "maxPromptTokens": class_plan.max_prompt_tokens,
        "maxOutputTokens": class_plan.max_output_tokens,
        "cachedPrefixTokens": class_plan.cached_prefix_tokens,
        # What arrives within the latency target may queue: a longer queue cannot meet it.
        "queue": {
            "maxLength": min(LONGEST_QUEUE, max(1, round(rate * milliseconds / 1000))),
            "deadlineMilliseconds": min(LONGEST_DEADLINE, milliseconds),
        },
        "shed": "429",
    }
