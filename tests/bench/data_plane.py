"""Envoy with a router beside it, before eight destinations that cost next to nothing: what is measured.

The destinations are listeners of a second Envoy that read the whole request and answer in a few hundred bytes, or of
:mod:`holding_upstream`, which holds every answer open.
"""

import json
import shutil
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import yaml

from e2e.harness.ports import PortLease
from e2e.harness.process import Command, Process
from e2e.harness.readiness import answers, until
from e2e.router import parts
from e2e.router.filters import manager
from e2e.router.parts import ENVOY, HOST, Layout, RouterPorts
from e2e.router.tables import SECRET, WrittenTable
from kvplan_router.envoy.filters import API
from tests.bench.cpu import cpu_seconds_of
from tests.bench.wrk import KEYS

DESTINATIONS = 8
_Entered = TypeVar("_Entered")
_ROOT = Path(__file__).parents[2]
_SEARCH_PATH = {"PYTHONPATH": ":".join(str(_ROOT / part) for part in (".", "router", "solver"))}
_ANSWER = '{"choices": [{"text": "ok"}], "usage": {"prompt_tokens": 500, "completion_tokens": 7}}'

_PAGE = """# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting 0
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running 0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc 0
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",num_gpu_blocks="4096"} 1
"""
"""What pickers read of an engine; a destination is never busy."""

Destinations = Callable[[Sequence[str], Path], Command]


def as_it_is(_: dict[str, Any]) -> None:
    """No change."""


def ask_nobody(document: dict[str, Any]) -> None:
    """Plain Envoy: the same without the filter."""
    manager(document)["http_filters"].pop(0)
    document["static_resources"]["clusters"].pop(1)


def that_answer(addresses: Sequence[str], directory: Path) -> Command:
    """Destinations that answer at once."""
    listeners = [_listener(address.rpartition(":")[2]) for address in addresses]
    config = directory / "destinations.yaml"
    config.write_text(yaml.safe_dump({"static_resources": {"listeners": listeners}}))
    argv = [str(ENVOY), "-c", str(config), "--concurrency", "1", "-l", "error"]
    return Command("destinations", [*argv, "--base-id", addresses[0].rpartition(":")[2]])


def that_hold(addresses: Sequence[str], directory: Path) -> Command:
    """Destinations that hold every answer open until told to let go."""
    return Command("destinations", [sys.executable, "-m", "tests.bench.holding_upstream", *addresses], _SEARCH_PATH)


class Plane:
    """What runs.

    Attributes:
        urls: to send requests to, one per Envoy or other proxy.
        processes: between the client and the destinations, by role.
        addresses: of the destinations.
        directory: of this run; ``index.json`` in it is the router's table.
        table: in force at first: every key has one home and a backup.
        router_ports: of the router, where there is one.
        ports: for whatever else is started.
    """

    def __init__(self, stack: ExitStack, destinations: Destinations) -> None:
        self._stack = stack
        self.directory = Path(tempfile.mkdtemp(prefix="kvplan-bench-"))
        stack.callback(shutil.rmtree, self.directory, ignore_errors=True)
        self.ports = PortLease()
        stack.callback(self.ports.release)
        self.processes: dict[str, Process] = {}
        self.urls: list[str] = []
        self._admins: list[str] = []
        self.addresses = [f"{HOST}:{self.ports.take()}" for _ in range(DESTINATIONS)]
        self.start("destinations", destinations(self.addresses, self.directory))
        ready = self.processes.pop("destinations")
        until(lambda: all(answers(f"http://{address}/health") for address in self.addresses), "destinations", ready)
        homes = {f"key-{key}": [key % DESTINATIONS] for key in range(KEYS)}
        backups = {key: (home[0] + 1) % DESTINATIONS for key, home in homes.items()}
        self.table = WrittenTable(self.addresses, budget_tokens=10**9, homes=homes, backups=backups)
        self.publish(self.table)
        (self.directory / parts.SECRET_FILE).write_bytes(SECRET)
        self.router_ports = RouterPorts(*(self.ports.take() for _ in range(3)))

    def publish(self, table: WrittenTable) -> None:
        """Replace the router's table in one step."""
        beside = self.directory / "index.new"
        beside.write_text(table.text())
        beside.replace(self.directory / parts.INDEX)

    def state(self) -> dict[str, Any]:
        """What the router says of itself."""
        found: dict[str, Any] = json.loads(get(f"http://{HOST}:{self.router_ports.admin}/state"))
        return found

    def until_in_force(self, table: WrittenTable) -> None:
        """Wait until the router acknowledges a table."""

        def acknowledged() -> bool:
            state = self.state()
            return (state["epoch"], state["generation"]) == (table.epoch, table.generation)

        until(acknowledged, "the table in force", self.processes["router"])

    def cpu_seconds(self) -> dict[str, float]:
        """CPU seconds so far, by role."""
        return {role: cpu_seconds_of(process.pid) for role, process in self.processes.items()}

    def start_router(self, transport: str, module: str = "kvplan_router", **options: str) -> None:
        """The whole router, or a module that takes the same options."""
        given = {"transport": transport, "readiness": "none", **options}
        layout = Layout(upstreams=DESTINATIONS, router_options=given)
        ours = parts.router(layout, 0, [self.router_ports], self.directory)
        argv = [module if part == "kvplan_router" else part for part in ours.argv]
        self.start("router", Command("router", argv, _SEARCH_PATH))
        ready = f"http://{HOST}:{self.router_ports.admin}/readyz"
        until(lambda: answers(ready), "the router", self.processes["router"])

    def write_endpoints(self) -> None:
        """Let a router write Envoy's endpoints file, and stop it."""
        self.start_router("aio")
        self.processes.pop("router").stop()

    def start_look_up(self, transport: str) -> None:
        """The transport alone, with a look-up for a decision."""
        self.write_endpoints()
        listen = f"{HOST}:{self.router_ports.grpc}"
        argv = [sys.executable, "-m", "tests.bench.lookup_router", "--transport", transport, "--listen", listen]
        self.start("router", Command("lookup", [*argv, *self.addresses], _SEARCH_PATH))

    def start_envoy(
        self, edit: Callable[[dict[str, Any]], None] = as_it_is, workers: int = 1, role: str = "Envoy"
    ) -> None:
        """One of our Envoys; ``edit`` changes its configuration."""
        listen, admin = self.ports.take(), self.ports.take()
        layout = Layout(edit=edit, envoy_workers=workers)
        self.start(role, parts.envoy_before(layout, [self.router_ports], listen, admin, self.directory))
        url, page = f"http://{HOST}:{listen}", f"http://{HOST}:{admin}"
        until(lambda: answers(f"{page}/ready") and _asks(page), "Envoy", self.processes[role])
        self.urls.append(url)
        self._admins.append(page)

    def unplanned(self) -> int:
        """Requests that Envoys sent on without a decision, because none came in time; 0 where nobody is asked."""
        pages = (get(f"{admin}/stats?filter=ext_proc.failure_mode_allowed") for admin in self._admins)
        return sum(int(page.rpartition(":")[2] or 0) for page in pages)

    def start_vllm_router(self, command: Path, policy: str) -> None:
        """The router that the vLLM project publishes."""
        port, metrics = self.ports.take(), self.ports.take()
        argv = [
            str(command), "--host", HOST, "--port", str(port), "--policy", policy, "--log-level", "error",
            "--prometheus-port", str(metrics), "--worker-urls", *(f"http://{a}" for a in self.addresses),
        ]  # fmt: skip
        self.start("router", Command("vllm-router", argv))
        url = f"http://{HOST}:{port}"
        until(lambda: answers(f"{url}/health"), "vllm-router", self.processes["router"])
        self.urls.append(url)

    def enter(self, what: AbstractContextManager[_Entered]) -> _Entered:
        """Something that ends with this plane."""
        return self._stack.enter_context(what)

    def start(self, role: str, command: Command) -> None:
        """Start a process that ends with this plane."""
        process = Process(command, self.directory)
        self._stack.callback(process.stop)
        process.start()
        self.processes[role] = process


@contextmanager
def plane(destinations: Destinations = that_answer) -> Iterator[Plane]:
    """Destinations; nothing before them yet."""
    with ExitStack() as stack:
        yield Plane(stack, destinations)


def get(url: str) -> str:
    """The page behind an address on loopback."""
    with urllib.request.urlopen(url, timeout=5) as response:
        text: str = response.read().decode()
        return text


def with_generation(table: WrittenTable, generation: int) -> WrittenTable:
    """The same plan as a newer table, with the homes moved on by one."""
    homes = {key: [(numbers[0] + generation) % DESTINATIONS] for key, numbers in table.homes.items()}
    return replace(table, generation=table.generation + generation, homes=homes, backups={})


def _asks(admin: str) -> bool:
    """Whether an Envoy finds the router healthy, if it knows one."""
    lines = get(f"{admin}/clusters").splitlines()
    flags = [line for line in lines if line.startswith("kvplan-router::") and "::health_flags::" in line]
    return all(line.endswith("::healthy") for line in flags)


def _listener(port: str) -> dict[str, Any]:
    routes = [
        {"match": match, "direct_response": {"status": 200, "body": {"inline_string": text}}}
        for match, text in (({"path": "/metrics"}, _PAGE), ({"prefix": "/"}, _ANSWER))
    ]
    hosts = [{"name": "all", "domains": ["*"], "routes": routes}]
    manager = {
        "@type": API + "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "destination",
        "route_config": {"name": "all", "virtual_hosts": hosts},
        "http_filters": [
            _filter("buffer", "buffer.v3.Buffer", max_request_bytes=16 << 20),
            _filter("router", "router.v3.Router"),
        ],
    }
    address = {"socket_address": {"address": HOST, "port_value": int(port)}}
    chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
    return {"name": f"destination-{port}", "address": address, "filter_chains": [chain]}


def _filter(name: str, kind: str, **fields: Any) -> dict[str, Any]:
    typed = {"@type": f"{API}extensions.filters.http.{kind}", **fields}
    return {"name": f"envoy.filters.http.{name}", "typed_config": typed}
