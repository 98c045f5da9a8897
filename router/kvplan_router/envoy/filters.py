"""The two pieces that any Envoy needs: the filter that asks the router, and the policy that obeys it.

In: what differs between gateways. Out: documents that go into our own configuration, or into a gateway's patches. Pure.
Source: 05-router §2 and §3.
"""

from dataclasses import dataclass
from typing import Any

from kvplan_router.transport.names import DESTINATION, LB_NAMESPACE, SERVED, SUBSET_NAMESPACE

API = "type.googleapis.com/envoy."
Document = dict[str, Any]


@dataclass(frozen=True)
class ExtProcOptions:
    """How a gateway asks.

    Attributes:
        cluster: of router processes, as the gateway names it.
        message_timeout_milliseconds: how long a decision may take before the request goes on without one.
        max_message_timeout_milliseconds: how long a request may wait for room, at most.
        waits_for_trailers: keep the stream open until the answer has ended (in-flight mode ``trailers``); otherwise
            it ends with the request (``early-close``).
        follow_retries: show the router the head of every answer.
        sample_responses: let the router look at the body of a few answers.
    """

    cluster: str
    message_timeout_milliseconds: int = 250
    max_message_timeout_milliseconds: int = 30_000
    waits_for_trailers: bool = True
    follow_retries: bool = True
    sample_responses: bool = True


def ext_proc_filter(options: ExtProcOptions) -> Document:
    """Headers are asked about, bodies never; without a router the request goes on unplanned."""
    watches = options.waits_for_trailers
    typed = {
        "@type": API + "extensions.filters.http.ext_proc.v3.ExternalProcessor",
        "grpc_service": {"envoy_grpc": {"cluster_name": options.cluster}},
        "failure_mode_allow": True,
        "message_timeout": _seconds(options.message_timeout_milliseconds),
        "max_message_timeout": _seconds(options.max_message_timeout_milliseconds),
        "allow_mode_override": watches and options.sample_responses,
        "processing_mode": {
            "request_header_mode": "SEND",
            "response_header_mode": "SEND" if watches and options.follow_retries else "SKIP",
            "request_body_mode": "NONE",
            "response_body_mode": "NONE",
            "request_trailer_mode": "SKIP",
            "response_trailer_mode": "SEND" if watches else "SKIP",
        },
        "metadata_options": {
            "forwarding_namespaces": {"untyped": [LB_NAMESPACE, SUBSET_NAMESPACE]},
            "receiving_namespaces": {"untyped": [LB_NAMESPACE]},
        },
    }
    return {"name": "envoy.filters.http.ext_proc", "typed_config": typed}


def override_host_policy() -> Document:
    """The destinations in order, then the least loaded of all: an unplanned answer beats none."""
    return {
        "policies": [
            load_balancing_policy(
                "override_host",
                "override_host.v3.OverrideHost",
                override_host_sources=[
                    {"metadata": {"key": LB_NAMESPACE, "path": [{"key": DESTINATION}]}},
                    {"header": DESTINATION},
                ],
                selected_host_key={"key": LB_NAMESPACE, "path": [{"key": SERVED}]},
                fallback_policy={"policies": [load_balancing_policy("least_request", "least_request.v3.LeastRequest")]},
            )
        ]
    }


def load_balancing_policy(name: str, kind: str, **fields: Any) -> Document:
    """One of Envoy's policies; ``kind`` is its type below the policies' package."""
    typed = {"@type": f"{API}extensions.load_balancing_policies.{kind}", **fields}
    return {"typed_extension_config": {"name": f"envoy.load_balancing_policies.{name}", "typed_config": typed}}


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:g}s"
