"""What a router process is started with: options, each with an environment variable and a default.

In: arguments and environment. Out: :class:`RouterSettings`, checked, or :class:`BadSetting` naming option, value and
remedy. Must not open anything.
"""

import argparse
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kvplan_router.transport.messages import InFlightMode

_PREFIX = "KVPLAN_ROUTER_"
CLUSTER = "cluster"
"""The table source that watches the API; anything else is a path."""


class BadSetting(Exception):
    """An option that cannot be used; the message names option, value and remedy."""

    def __init__(self, option: str, value: object, remedy: str) -> None:
        super().__init__(f"--{option} is {value!r}: {remedy}")


@dataclass(frozen=True)
class RouterSettings:
    """The settings of one process; ``kvplan-router --help`` says what each is for."""

    namespace: str
    fleet: str
    table: str = CLUSTER
    kubeconfig: Path | None = None
    secret_file: Path | None = None
    fleet_uid: str = ""
    identity: str = "router"
    transport: str = "auto"
    listen: str = "0.0.0.0:9002"
    health: str = "0.0.0.0:9003"
    admin: str = "0.0.0.0:9090"
    insecure: bool = False
    certificate: Path | None = None
    key: Path | None = None
    in_flight: InFlightMode = InFlightMode.TRAILERS
    endpoints_file: Path | None = None
    readiness: str = "probe"
    exchange: str = ""
    peers: tuple[str, ...] = ()
    sample_milli: int = 20
    longest_wait_seconds: int = 29
    session_header: str = "x-session-id"
    model_header: str = "x-gateway-model-name"
    paper_dispatch: bool = False
    body_bytes_max: int = 4 * 1024 * 1024
    share_patience_seconds: float = 10.0
    lame_duck_seconds: float = 3.0
    grace_seconds: float = 30.0
    log_level: str = "info"

    @property
    def table_path(self) -> Path:
        """Where the table is, for a source that is not the cluster."""
        return Path(self.table)

    @property
    def fleet_label(self) -> str:
        """The fleet as metrics name it."""
        return f"{self.namespace}/{self.fleet}"


def read_settings(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> RouterSettings:
    """Read the settings; an argument wins over its environment variable.

    Raises:
        BadSetting: a value that cannot be used.
        SystemExit: wrong arguments, or ``--help``.
    """
    parser = _parser()
    surroundings = os.environ if environment is None else environment
    given = [f"--{name}={surroundings[variable]}" for name, variable in _variables(parser) if variable in surroundings]
    return _checked(parser.parse_args([*given, *arguments]))


def _variables(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """Every option with its environment variable."""
    for action in parser._actions:  # argparse has no other list of its options
        name = action.option_strings[-1].removeprefix("--")
        yield name, _PREFIX + name.upper().replace("-", "_")


class Option(NamedTuple):
    """One option.

    Attributes:
        name: without hyphens before it.
        variable: of the environment, which gives it too.
        default: as written on a command line; empty for none.
        choices: of values; empty where others are taken.
        about: what it is for.
    """

    name: str
    variable: str
    default: str
    choices: tuple[str, ...]
    about: str


def options() -> Iterator[Option]:
    """Every option that a process takes, in the order of ``--help``."""
    parser = _parser()
    actions = {action.option_strings[-1].removeprefix("--"): action for action in parser._actions}
    for name, variable in _variables(parser):
        action = actions[name]
        about = str(action.help).rpartition(" (default: ")[0]
        if about:  # --help itself has no default
            yield Option(name, variable, str(action.default), tuple(map(str, action.choices or ())), about)


def split_address(option: str, text: str) -> tuple[str, int]:
    """Host and port of ``host:port``; IPv6 hosts in brackets.

    Raises:
        BadSetting: it is none.
    """
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isdecimal() and int(port) < 65_536):
        raise BadSetting(option, text, "write host:port, such as 0.0.0.0:9002 or [::]:9002")
    return host.strip("[]"), int(port)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kvplan-router", description="Answers Envoy's ext_proc with the destinations of a planned table.",
        epilog=f"Every option can be given as {_PREFIX}NAME in the environment.",
    )  # fmt: skip

    def option(name: str, default: str, about: str, choices: Sequence[str] | None = None) -> None:
        parser.add_argument(
            f"--{name}", default=default, choices=choices, help=f"{about} (default: {default or 'none'})"
        )

    option("fleet", "", "namespace/name of the ServingFleet")
    option("table", CLUSTER, "'cluster' watches the API; else a file or a directory with index.json")
    option("kubeconfig", "", "of the cluster, where the router does not run in it")
    option("secret-file", "", "hash secret of keys, 16 to 64 bytes; without one a weak secret of the fleet's uid")
    option("fleet-uid", "", "uid of the fleet, for the weak secret; the cluster source finds it by itself")
    option("identity", socket.gethostname(), "of this process, as in the index's routers")
    option("transport", "auto", "'auto' is native where it is installed", ["auto", "native", "aio"])
    option("listen", "0.0.0.0:9002", "ext_proc and health, gRPC")
    option("health", "0.0.0.0:9003", "gRPC health without TLS, for probes; empty for none")
    option("admin", "0.0.0.0:9090", "metrics and state, HTTP")
    option("insecure", "no", "listen without TLS", ["yes", "no"])
    option("certificate", "", "PEM file of the server's certificate chain; read again when it changes")
    option("key", "", "PEM file of its private key")
    option("in-flight", "trailers", "how requests in flight are counted", [mode.value for mode in InFlightMode])
    option("endpoints-file", "", "endpoints file for the Envoy beside this process; empty for none")
    option("readiness", "probe", "of engines: pods (API), probe (/health) or none", ["pods", "probe", "none"])
    option("exchange", "", "UDP host:port where peers' counters arrive; empty for none")
    option("peers", "", "host:port of the other processes' exchange, separated by commas")
    option("sample-milli", "20", "thousandths of responses whose token counts are read, where they would pass unseen")
    option(
        "longest-wait-seconds",
        "29",
        "for room, whatever a class says; a second less than the gateway's max_message_timeout; 0: none may wait",
    )
    option("session-header", "x-session-id", "names the session of a request")
    option(
        "model-header", "x-gateway-model-name", "names the model of a request, where a gateway puts it into a header"
    )
    option("paper-dispatch", "no", "dispatch by the paper's rules, for comparison", ["yes", "no"])
    option("body-bytes-max", str(RouterSettings.body_bytes_max), "a longer body is not searched for a key")
    option("share-patience-seconds", "10", "without a share of the budgets, after which it is ready all the same")
    option("lame-duck-seconds", "3", "how long new requests are still served after SIGTERM")
    option("grace-seconds", "30", "how long open streams are waited for after that")
    option("log-level", "info", "of the log", ["debug", "info", "warning", "error"])
    return parser


def _checked(given: argparse.Namespace) -> RouterSettings:
    namespace, slash, fleet = given.fleet.partition("/")
    if not (slash and namespace and fleet and "/" not in fleet):
        raise BadSetting("fleet", given.fleet, "write namespace/name of the ServingFleet")
    if given.insecure == "no" and not (given.certificate and given.key):
        raise BadSetting("certificate", given.certificate, "give --certificate and --key, or --insecure yes for tests")
    for name in ("listen", "admin", *(name for name in ("health", "exchange") if getattr(given, name))):
        split_address(name, getattr(given, name))
    peers = tuple(peer.strip() for peer in given.peers.split(",") if peer.strip())
    for peer in peers:
        split_address("peers", peer)
    return RouterSettings(
        namespace=namespace, fleet=fleet, table=given.table, kubeconfig=_path(given.kubeconfig),
        secret_file=_path(given.secret_file), fleet_uid=given.fleet_uid, identity=given.identity,
        transport=given.transport, listen=given.listen, health=given.health, admin=given.admin,
        insecure=given.insecure == "yes", certificate=_path(given.certificate), key=_path(given.key),
        in_flight=InFlightMode(given.in_flight), endpoints_file=_path(given.endpoints_file),
        readiness=given.readiness, exchange=given.exchange, peers=peers,
        sample_milli=_whole("sample-milli", given.sample_milli, 1000),
        longest_wait_seconds=_whole("longest-wait-seconds", given.longest_wait_seconds, 3600),
        session_header=given.session_header.lower(), model_header=given.model_header.lower(),
        paper_dispatch=given.paper_dispatch == "yes",
        body_bytes_max=_whole("body-bytes-max", given.body_bytes_max, 1 << 30),
        share_patience_seconds=_seconds("share-patience-seconds", given.share_patience_seconds),
        lame_duck_seconds=_seconds("lame-duck-seconds", given.lame_duck_seconds),
        grace_seconds=_seconds("grace-seconds", given.grace_seconds), log_level=given.log_level,
    )  # fmt: skip


def _path(text: str) -> Path | None:
    return Path(text) if text else None


def _whole(option: str, text: str, most: int) -> int:
    if not text.isdecimal() or int(text) > most:
        raise BadSetting(option, text, f"write an integer from 0 to {most}")
    return int(text)


def _seconds(option: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 86_400:
        raise BadSetting(option, text, "write seconds, from 0 to a day")
    return seconds
