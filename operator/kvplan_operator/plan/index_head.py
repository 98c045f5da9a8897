"""The part of the routers' index that a plan decides: classes, slots, budgets, grids (09-contracts).

Inputs: a ``Planned``, the fingerprint of the hash secret, epoch and generation. Output: the index document
without its keys. Pods are not known here: whoever publishes the index replaces the slots by those that run, and
adds the routers. The secret itself is never needed. Pure.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.fleet_enums import RoutingMode
from kvplan_operator.api.request_class import HeaderMatch, Match, RequestClass
from kvplan_operator.api.routing_plan import ClassPlan, RoutingPlan
from kvplan_operator.plan.class_routing import key_rules, queue, shed
from kvplan_operator.plan.digest import plan_digest
from kvplan_operator.plan.engine_flags import TOKEN_GRID
from kvplan_operator.plan.planned import Planned
from kvplan_solver.cacheroute.keys import HASH_NAME

FULL_WEIGHT = 1000
LONGEST_QUEUE = 1_000_000
GRIDS = {
    "promptTokens": TOKEN_GRID,
    "outputTokens": TOKEN_GRID,
    "interarrivalMicroseconds": tuple(sorted([*(64 << n for n in range(24)), *(96 << n for n in range(23))])),
    "latencyMilliseconds": tuple(sorted([*(8 << n for n in range(20)), *(12 << n for n in range(19))])),
}
"""Upper edges of the routers' histograms, two per octave: gaps of 64 µs to 537 s, latencies of 8 ms to 70 min."""


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


def index_head(planned: Planned, fingerprint: str, version: TableVersion) -> dict[str, Any]:
    """The index without keys, with every slot of the plan and no router named.

    Args:
        planned: the plan in force.
        fingerprint: of the routers' hash secret, 16 hex digits.
        version: epoch and generation.
    """
    fleet = planned.problem.fleet
    mode = "plan" if fleet.spec.routing.mode is RoutingMode.PLAN else "observe"
    return common_head(fleet, fingerprint, version) | {
        "mode": mode,
        **plan_told(planned),
        "classes": planned_classes(planned),
        "slots": [
            {
                "slot": slot.name, "configuration": slot.configuration, "budgetTokens": slot.budget_tokens,
                "weightMilli": FULL_WEIGHT, "state": "serving",
            }
            for slot in slots_of(planned.plan)
        ],
    }  # fmt: skip


def plan_told(planned: Planned) -> dict[str, Any]:
    """What an index says of the plan itself, whatever of it serves."""
    return {"planDigest": plan_digest(planned.plan.spec), "blockTokens": planned.plan.spec.block_tokens}


def common_head(fleet: ServingFleet, fingerprint: str, version: TableVersion) -> dict[str, Any]:
    """What every index of a fleet says, with a plan or without."""
    return {
        "epoch": version.epoch,
        "generation": version.generation,
        "hash": {"name": HASH_NAME, "fingerprint": fingerprint},
        "unmatched": fleet.spec.routing.unmatched.value,
        "grids": {name: list(edges) for name, edges in GRIDS.items()},
        "routers": [],
    }


def planned_classes(planned: Planned) -> list[dict[str, Any]]:
    """Rules and policies of every class, in match order."""
    plans = {class_plan.name: class_plan for class_plan in planned.plan.spec.classes}
    problem = planned.problem
    return [
        rules | class_policy(request_class, plans[request_class.metadata.name], planned)
        for request_class, rules in class_rules(problem.classes, problem.fleet)
    ]


def class_rules(classes: Iterable[RequestClass], fleet: ServingFleet) -> Iterator[tuple[RequestClass, dict[str, Any]]]:
    """How requests and keys are recognised, in match order: descending priority, then name; once per model alias."""
    for request_class in sorted(classes, key=lambda c: (-c.spec.priority, c.metadata.name)):
        tenant = {"tenant": request_class.spec.tenant} if request_class.spec.tenant else {}
        common = {"name": request_class.metadata.name, "keyRules": key_rules(request_class, fleet), **tenant}
        for match in _matches(request_class.spec.match):
            yield request_class, common | {"match": match}


def _matches(match: Match) -> Iterator[dict[str, Any]]:
    headers = [_header(header) for header in match.headers]
    for model in match.models or (None,):
        found: dict[str, Any] = {"headers": headers} if headers else {}
        yield found | ({"model": model} if model else {})


def _header(header: HeaderMatch) -> dict[str, str]:
    condition = {"exact": header.exact} if header.exact is not None else {"prefix": header.prefix or ""}
    return {"name": header.name, **condition}


def class_policy(request_class: RequestClass, class_plan: ClassPlan, planned: Planned) -> dict[str, Any]:
    """What the plan says of a class, as the index carries it."""
    rate = next(c.arrival_rate for c in planned.instance.classes if c.name == class_plan.name)
    # What arrives within the latency target may queue: a longer queue cannot meet it.
    within_target = round(rate * request_class.spec.slo.latency_milliseconds / 1000)
    prompt = class_plan.reserved_prompt_tokens
    return {
        "routes": [route.to_wire() for route in class_plan.routes],
        **({"reservedPromptTokens": prompt} if prompt else {}),
        "admitMilli": class_plan.admit_milli,
        "maxPromptTokens": class_plan.max_prompt_tokens,
        "maxOutputTokens": class_plan.max_output_tokens,
        "cachedPrefixTokens": class_plan.cached_prefix_tokens,
        "queue": queue(request_class, min(LONGEST_QUEUE, max(1, within_target))),
        "shed": shed(request_class),
    }
