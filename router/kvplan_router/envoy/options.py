"""The choices in our own Envoy's configuration, each with its default and why. Standard library only."""

from dataclasses import dataclass

ENGINES = "engines"
"""Name of the cluster of engines, in Envoy's configuration and in the endpoints file."""
ROUTERS = "kvplan-router"
"""Name of the cluster of router processes."""


@dataclass(frozen=True)
class Address:
    """Where something listens.

    Attributes:
        host: a name or an IP address.
        port: TCP port.
    """

    host: str
    port: int


@dataclass(frozen=True)
class EnvoyOptions:
    """What an Envoy beside the router is started with.

    Attributes:
        listen: where clients connect.
        admin: Envoy's admin server; None leaves it out.
        routers: every router process beside this Envoy; each is an endpoint of its own.
        endpoints_file: the file that the router writes; Envoy watches its directory.
        engines_dns: a headless Service instead of the file; None uses the file.
        message_timeout_milliseconds: how long a decision may take before the request goes on without one.
        max_message_timeout_milliseconds: the longest queue deadline of any class.
        router_certificate_authority: file that verifies the routers' certificate; None talks to them without TLS.
        follow_retries: show the router the head of every answer, which says who really served: in flight is counted
            there, at the price of one more message per request.
        sample_responses: let the router look at the body of a few answers, for their token counts.
    """

    listen: Address = Address("0.0.0.0", 8080)  # noqa: S104 - clients come from outside the pod
    admin: Address | None = Address("127.0.0.1", 9901)
    routers: tuple[Address, ...] = (Address("127.0.0.1", 9002),)
    endpoints_file: str = "/run/kvplan/endpoints.json"
    engines_dns: Address | None = None
    message_timeout_milliseconds: int = 250
    max_message_timeout_milliseconds: int = 30_000
    router_certificate_authority: str | None = None
    follow_retries: bool = True
    sample_responses: bool = True
