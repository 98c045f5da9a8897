"""What a data plane consists of, and the command line of each part.

In: a layout, ports, a directory. Out: commands. It starts nothing. Everything binds 127.0.0.1.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import envoy
import yaml

from e2e.harness.process import Command
from kvplan_router.envoy.bootstrap import bootstrap
from kvplan_router.envoy.options import Address, EnvoyOptions

HOST = "127.0.0.1"
ENVOY = Path(envoy.__path__[0]) / "_bin" / "envoy"
TRANSPORT_VARIABLE = "KVPLAN_E2E_TRANSPORT"
"""Which transport the routers use: aio, native or auto."""
INDEX, SECRET_FILE, ENDPOINTS = "index.json", "secret", "endpoints.json"
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Layout:
    """What a bed consists of.

    Attributes:
        upstreams: how many.
        engine: arguments of the engine stand-in; None starts mirrors.
        running: addresses of upstreams that run already; none is started then.
        routers: processes, each an endpoint of Envoy's.
        router_options: further arguments of every router.
        envoy_workers: threads of Envoy.
        edit: changes Envoy's configuration before it starts.
    """

    upstreams: int = 2
    engine: Sequence[str] | None = None
    running: Sequence[str] = ()
    routers: int = 1
    router_options: Mapping[str, str] = field(default_factory=dict)
    envoy_workers: int = 1
    edit: Callable[[dict[str, Any]], None] = lambda _: None


PLAIN = Layout()
"""Two mirrors, one router."""


@dataclass(frozen=True)
class RouterPorts:
    """Ports of one router process."""

    grpc: int
    admin: int
    exchange: int


def with_options(layout: Layout, **options: str) -> Layout:
    """A layout with further router options; underscores stand for hyphens."""
    named = {name.replace("_", "-"): value for name, value in options.items()}
    return replace(layout, router_options={**layout.router_options, **named})


def upstream(layout: Layout, number: int, address: str) -> Command:
    """A mirror, or an engine stand-in."""
    port = address.rpartition(":")[2]
    environment = {"PYTHONPATH": str(_ROOT)}
    if layout.engine is None:
        return Command(f"mirror-{number}", [sys.executable, "-m", "e2e.router.mirror", "--port", port], environment)
    argv = [sys.executable, "-m", "kvplan_engine", "serve", "tiny", "--host", HOST, "--port", port]
    return Command(f"engine-{number}", [*argv, *layout.engine], environment)


def router(layout: Layout, number: int, ports: Sequence[RouterPorts], directory: Path) -> Command:
    """One router process: its table, secret and endpoints file are in the directory."""
    own = ports[number]
    options = {
        "fleet": "default/fleet", "identity": f"router-{number}", "insecure": "yes", "health": "",
        "table": str(directory / INDEX), "secret-file": str(directory / SECRET_FILE),
        "endpoints-file": str(directory / ENDPOINTS), "transport": os.environ.get(TRANSPORT_VARIABLE, "aio"),
        "listen": f"{HOST}:{own.grpc}", "admin": f"{HOST}:{own.admin}", "exchange": f"{HOST}:{own.exchange}",
        "peers": ",".join(f"{HOST}:{each.exchange}" for each in ports if each is not own),
        "lame-duck-seconds": "1.5", **layout.router_options,
    }  # fmt: skip
    argv = [sys.executable, "-m", "kvplan_router", *(f"--{name}={value}" for name, value in options.items())]
    path = ":".join(str(_ROOT / part) for part in ("router", "solver"))
    return Command(f"router-{number}", argv, {"PYTHONPATH": path}, grace_seconds=40)


def envoy_before(layout: Layout, ports: Sequence[RouterPorts], listen: int, admin: int, directory: Path) -> Command:
    """Envoy with its configuration, which is written into the directory."""
    options = EnvoyOptions(
        listen=Address(HOST, listen),
        admin=Address(HOST, admin),
        routers=tuple(Address(HOST, each.grpc) for each in ports),
        endpoints_file=str(directory / ENDPOINTS),
    )
    document = bootstrap(options)
    layout.edit(document)
    config = directory / "envoy.yaml"
    config.write_text(yaml.safe_dump(document, sort_keys=False))
    argv = [str(ENVOY), "-c", str(config), "--concurrency", str(layout.envoy_workers), "--base-id", str(listen)]
    return Command("envoy", [*argv, "-l", "warning", "--drain-time-s", "1", "--parent-shutdown-time-s", "2"])
