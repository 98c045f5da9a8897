"""Canonical JSON and the digests made of it: of a plan, which names it, and of a plan's inputs.

Purpose: the same decision has the same name everywhere, and a change of an input is seen. Canonical JSON
has sorted keys, no blanks, UTF-8 and integers only, so that no number has two spellings. Inputs: API types.
Outputs: SHA-256 in lower-case hex. Source: 01-api (RoutingPlan).
"""

import hashlib
import json
from collections.abc import Collection, Mapping

from pydantic import JsonValue

from kvplan_operator.api.base import ApiModel
from kvplan_operator.api.fleet import ServingFleetSpec
from kvplan_operator.api.request_class import RequestClassSpec
from kvplan_operator.api.routing_plan import RoutingPlan, RoutingPlanSpec
from kvplan_operator.errors import DigestError

NAME_DIGITS = 10
"""Hex digits of the digest in a plan's name."""

NOT_FOR_PLANNING = ("acceptedPlan", "planPolicy", "suspend")
"""Fields of a fleet that decide what happens to a plan, not what the plan is."""
ROUTING_ONLY = ("keys", "queue", "shed")
"""Fields of a class that only routers act on."""


def canonical_json(value: JsonValue) -> bytes:
    """The one spelling of a JSON value, UTF-8.

    Raises:
        DigestError: a float, which has more than one spelling.
    """
    _refuse_floats(value)
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8")


def digest(value: JsonValue) -> str:
    """SHA-256 of the canonical JSON of a value, 64 hex digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def plan_digest(spec: RoutingPlanSpec) -> str:
    """Digest of a plan's spec; absent fields count as absent and defaults as written."""
    return digest(spec.to_wire())


def plan_name(spec: RoutingPlanSpec) -> str:
    """``<fleet>-<first 10 hex digits of the digest>``."""
    return f"{spec.fleet_name}-{plan_digest(spec)[:NAME_DIGITS]}"


def inputs_digest(fleet: ServingFleetSpec, classes: Mapping[str, RequestClassSpec]) -> str:
    """Digest of the fleet and class fields that matter for planning.

    Args:
        fleet: spec of the fleet; what decides about applying a plan is left out.
        classes: spec by class name; the order does not count, nor does what only routers act on.
    """
    specs: dict[str, JsonValue] = {name: _without(spec, ROUTING_ONLY) for name, spec in classes.items()}
    return digest({"fleet": _without(fleet, NOT_FOR_PLANNING), "classes": specs})


def check_plan_name(plan: RoutingPlan) -> str:
    """The digest of a plan whose name agrees with it.

    Raises:
        DigestError: the name belongs to another content.
    """
    expected = plan_name(plan.spec)
    if plan.metadata.name != expected:
        raise DigestError(
            f"RoutingPlan {plan.metadata.name}: metadata.name is {plan.metadata.name!r}: "
            f"name it {expected}, after the digest of its spec"
        )
    return plan_digest(plan.spec)


def _without(spec: ApiModel, fields: Collection[str]) -> dict[str, JsonValue]:
    return {name: value for name, value in spec.to_wire().items() if name not in fields}


def _refuse_floats(value: JsonValue, path: str = "$") -> None:
    if isinstance(value, float):
        raise DigestError(f"canonical JSON: {path} is {value!r}: use an integer with the unit in its name")
    if isinstance(value, dict):
        for name, inner in value.items():
            _refuse_floats(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            _refuse_floats(inner, f"{path}[{position}]")
