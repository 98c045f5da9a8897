"""``kvplan router envoy-config``: what an Envoy needs to ask the router, for our own Envoy or for a gateway.

Writes YAML on stdout and changes nothing. ``manifests/envoy/`` holds what it prints without options.
"""

import sys
from enum import StrEnum
from typing import Annotated

import typer

from kvplan_cli.errors import CommandError
from kvplan_cli.files import yaml_documents
from kvplan_router.envoy.bootstrap import bootstrap
from kvplan_router.envoy.gateways import GatewayOptions, envoy_gateway, inference_pool, istio
from kvplan_router.envoy.options import Address, EnvoyOptions

router_app = typer.Typer(no_args_is_help=True, help="Configure what stands before and beside the router.")

_DEFAULT = EnvoyOptions()
_HIGHEST_PORT = 65_535


class Gateway(StrEnum):
    """Who asks the router."""

    OWN = "own"
    ENVOY_GATEWAY = "envoy-gateway"
    ISTIO = "istio"
    INFERENCE_POOL = "inference-pool"


_MANIFESTS = {Gateway.ENVOY_GATEWAY: envoy_gateway, Gateway.ISTIO: istio, Gateway.INFERENCE_POOL: inference_pool}


@router_app.callback()
def _router() -> None:
    """Configure what stands before and beside the router."""


@router_app.command("envoy-config")
def envoy_config(
    gateway: Annotated[Gateway, typer.Option("--for", help="Our own Envoy's bootstrap, or a gateway's manifests.")] = (
        Gateway.OWN
    ),
    listen: Annotated[str, typer.Option(help="own: host:port for clients.")] = "0.0.0.0:8080",
    admin: Annotated[str, typer.Option(help="own: host:port of Envoy's admin server; empty for none.")] = (
        "127.0.0.1:9901"
    ),
    router: Annotated[
        list[str] | None, typer.Option(help="own: host:port of a router process. Repeatable. [127.0.0.1:9002]")
    ] = None,
    endpoints_file: Annotated[str, typer.Option(help="own: file that the router writes the engines to.")] = (
        _DEFAULT.endpoints_file
    ),
    engines_dns: Annotated[str, typer.Option(help="own: host:port of a headless Service instead of that file.")] = "",
    longest_wait_ms: Annotated[int, typer.Option(min=0, help="own: longest queue deadline of any class.")] = 29_000,
    router_ca: Annotated[str, typer.Option(help="own: CA file of the router's certificate; empty: no TLS.")] = "",
    namespace: Annotated[str, typer.Option(help="gateways: namespace of the fleet.")] = "default",
    fleet: Annotated[str, typer.Option(help="gateways: name of the ServingFleet.")] = "assistants",
) -> None:
    """Print what an Envoy needs to ask the router."""
    if gateway is not Gateway.OWN:
        options = GatewayOptions(namespace=namespace, fleet=fleet, route=fleet)
        sys.stdout.write(yaml_documents(_MANIFESTS[gateway](options)))
        return
    own = EnvoyOptions(
        listen=_address("--listen", listen),
        admin=_address("--admin", admin) if admin else None,
        routers=tuple(_address("--router", text) for text in router or ["127.0.0.1:9002"]),
        endpoints_file=endpoints_file,
        engines_dns=_address("--engines-dns", engines_dns) if engines_dns else None,
        max_message_timeout_milliseconds=longest_wait_ms + _ANSWER_MILLISECONDS,
        router_certificate_authority=router_ca or None,
    )
    sys.stdout.write(yaml_documents([bootstrap(own)]))


_ANSWER_MILLISECONDS = 1_000
"""What the answer to a request that waited may take beyond its deadline."""


def _address(option: str, text: str) -> Address:
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isdecimal() and 0 < int(port) <= _HIGHEST_PORT):
        raise CommandError(option, f"{text!r} is no address", "write host:port, such as 127.0.0.1:9002")
    return Address(host.strip("[]"), int(port))
