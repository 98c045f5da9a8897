"""What the index says of a class whether or not a plan is in force: key rules, queue and shed policy (09-contracts).

Inputs: a RequestClass, its fleet. Outputs: values as the index carries them. What a class states wins; what it leaves
out follows the fleet and the latency target. Pure.
"""

from typing import Final

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.api.request_class_routing import KeyRule, Shed

KEY_FIELDS: Final = ("prompt_cache_key", "user")
"""Fields of a body that name what requests have in common, where neither class nor headers say it."""
LONGEST_DEADLINE: Final = 3_600_000
"""Milliseconds that a request may wait by the index format."""

WireRule = dict[str, str | int]


def key_rules(request_class: RequestClass, fleet: ServingFleet) -> list[WireRule]:
    """Where routers look for the key, in order: the class's own rules, else the fleet's headers and ``KEY_FIELDS``."""
    if request_class.spec.keys is not None:
        return [_rule(rule) for rule in request_class.spec.keys.rules_in_order]
    headers: list[WireRule] = [{"kind": "header", "name": name} for name in fleet.spec.routing.key_headers]
    return headers + [{"kind": "field", "name": name} for name in KEY_FIELDS]


def rule_text(rule: WireRule) -> str:
    """A rule as the key hash takes it in (docs/contracts/key-hash.md)."""
    return f"{rule['kind']}:{rule.get('name', rule.get('bytes'))}"


def queue(request_class: RequestClass, length: int) -> dict[str, int]:
    """How requests wait.

    Args:
        request_class: what it states wins.
        length: requests that may wait where it states none.
    """
    stated = request_class.spec.queue
    deadline = stated.deadline_milliseconds
    return {
        "maxLength": length if stated.max_length is None else stated.max_length,
        "deadlineMilliseconds": _within_target(request_class) if deadline is None else deadline,
    }


def shed(request_class: RequestClass) -> str:
    """``other`` or ``429``."""
    return "other" if request_class.spec.shed is Shed.OTHER else "429"


def _rule(rule: KeyRule) -> WireRule:
    if rule.header is not None:
        return {"kind": "header", "name": rule.header}
    if rule.json_field is not None:
        return {"kind": "field", "name": rule.json_field}
    return {"kind": "prefix", "bytes": rule.prefix_bytes or 0}


def _within_target(request_class: RequestClass) -> int:
    return min(LONGEST_DEADLINE, request_class.spec.slo.latency_milliseconds)
