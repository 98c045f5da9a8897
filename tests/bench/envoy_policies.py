"""Plain Envoy choosing among engines, in turn or by a header's hash: edits of our Envoy's configuration."""

from typing import Any

from e2e.router.filters import manager
from kvplan_router.envoy.filters import load_balancing_policy


def in_turn(document: dict[str, Any]) -> None:
    """Round robin; the router is not asked."""
    _ask_nobody(document)
    _engines(document)["load_balancing_policy"] = _only("round_robin", "round_robin.v3.RoundRobin")


def by_hash(document: dict[str, Any], header: str) -> None:
    """A ring of hashes of one header's value; the router is not asked."""
    _ask_nobody(document)
    _engines(document)["load_balancing_policy"] = _only("ring_hash", "ring_hash.v3.RingHash")
    route = manager(document)["route_config"]["virtual_hosts"][0]["routes"][0]["route"]
    route["hash_policy"] = [{"header": {"header_name": header}}]


def _ask_nobody(document: dict[str, Any]) -> None:
    manager(document)["http_filters"].pop(0)


def _engines(document: dict[str, Any]) -> dict[str, Any]:
    engines: dict[str, Any] = document["static_resources"]["clusters"][0]
    return engines


def _only(name: str, kind: str) -> dict[str, Any]:
    return {"policies": [load_balancing_policy(name, kind)]}
