"""Plain Envoy choosing among engines, in turn or by a header's hash: edits of our Envoy's configuration."""

from typing import Any

from kvplan_router.envoy.filters import API


def in_turn(document: dict[str, Any]) -> None:
    """Round robin; the router is not asked."""
    _ask_nobody(document)
    _engines(document)["load_balancing_policy"] = _policy("round_robin", "round_robin.v3.RoundRobin")


def by_hash(document: dict[str, Any], header: str) -> None:
    """A ring of hashes of one header's value; the router is not asked."""
    _ask_nobody(document)
    _engines(document)["load_balancing_policy"] = _policy("ring_hash", "ring_hash.v3.RingHash")
    route = _manager(document)["route_config"]["virtual_hosts"][0]["routes"][0]["route"]
    route["hash_policy"] = [{"header": {"header_name": header}}]


def _ask_nobody(document: dict[str, Any]) -> None:
    _manager(document)["http_filters"].pop(0)


def _manager(document: dict[str, Any]) -> dict[str, Any]:
    chain = document["static_resources"]["listeners"][0]["filter_chains"][0]
    manager: dict[str, Any] = chain["filters"][0]["typed_config"]
    return manager


def _engines(document: dict[str, Any]) -> dict[str, Any]:
    engines: dict[str, Any] = document["static_resources"]["clusters"][0]
    return engines


def _policy(name: str, kind: str) -> dict[str, Any]:
    typed = {"@type": f"{API}extensions.load_balancing_policies.{kind}"}
    named = {"name": f"envoy.load_balancing_policies.{name}", "typed_config": typed}
    return {"policies": [{"typed_extension_config": named}]}
