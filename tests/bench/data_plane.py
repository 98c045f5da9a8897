"""Envoy with a router beside it, before eight destinations that cost next to nothing: what is measured.

The destinations are listeners of a second Envoy that read the whole request and answer in a few hundred bytes.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from e2e.harness.ports import PortLease
from e2e.harness.process import Command, Process
from e2e.harness.readiness import answers, until
from e2e.router import parts
from e2e.router.filters import ext_proc
from e2e.router.parts import ENVOY, HOST, Layout, RouterPorts
from e2e.router.tables import SECRET, WrittenTable
from kvplan_router.envoy.filters import API
from tests.bench.cpu import cpu_seconds_of
from tests.bench.wrk import KEYS

DESTINATIONS = 8
VLLM_ROUTER = "vllm-router==0.1.17"
_ROOT = Path(__file__).parents[2]
_ANSWER = '{"choices": [{"text": "ok"}], "usage": {"prompt_tokens": 500, "completion_tokens": 7}}'


def as_it_is(_: dict[str, Any]) -> None:
    """No change."""


def ask_nobody(document: dict[str, Any]) -> None:
    """Plain Envoy: the same without the filter."""
    listener = document["static_resources"]["listeners"][0]
    listener["filter_chains"][0]["filters"][0]["typed_config"]["http_filters"].pop(0)
    document["static_resources"]["clusters"].pop(1)


def follow_no_retries(document: dict[str, Any]) -> None:
    """One message less per request: the head of an answer is not shown to the router."""
    ext_proc(document)["processing_mode"]["response_header_mode"] = "SKIP"


class Plane:
    """What runs.

    Attributes:
        url: to send requests to.
        processes: between the client and the destinations, by role.
        directory: of this run; ``index.json`` in it is the router's table.
        table: in force at first.
        router_ports: of the router, where there is one.
    """

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.directory = Path(tempfile.mkdtemp(prefix="kvplan-bench-"))
        stack.callback(shutil.rmtree, self.directory, ignore_errors=True)
        self._ports = PortLease()
        stack.callback(self._ports.release)
        self.processes: dict[str, Process] = {}
        self._admin = ""
        self.addresses = [f"{HOST}:{self._ports.take()}" for _ in range(DESTINATIONS)]
        self._start("destinations", _destinations(self.addresses, self.directory))
        ready = self.processes.pop("destinations")
        until(lambda: all(answers(f"http://{address}/health") for address in self.addresses), "destinations", ready)
        homes = {f"key-{key}": [key % DESTINATIONS] for key in range(KEYS)}
        self.table = WrittenTable(self.addresses, budget_tokens=10**9, homes=homes)
        self.publish(self.table)
        (self.directory / parts.SECRET_FILE).write_bytes(SECRET)
        self.router_ports = RouterPorts(*(self._ports.take() for _ in range(3)))

    def publish(self, table: WrittenTable) -> None:
        """Replace the router's table in one step."""
        beside = self.directory / "index.new"
        beside.write_text(table.text())
        beside.replace(self.directory / parts.INDEX)

    def until_in_force(self, table: WrittenTable) -> None:
        """Wait until the router acknowledges a table."""
        page = f"http://{HOST}:{self.router_ports.admin}/state"

        def acknowledged() -> bool:
            state = json.loads(_get(page))
            return (state["epoch"], state["generation"]) == (table.epoch, table.generation)

        until(acknowledged, "the table in force", self.processes["router"])

    def cpu_seconds(self) -> dict[str, float]:
        """CPU seconds so far, by role."""
        return {role: cpu_seconds_of(process.pid) for role, process in self.processes.items()}

    def start_router(self, transport: str) -> None:
        """The whole router."""
        layout = Layout(upstreams=DESTINATIONS, router_options={"transport": transport, "readiness": "none"})
        self._start("router", parts.router(layout, 0, [self.router_ports], self.directory))
        ready = f"http://{HOST}:{self.router_ports.admin}/readyz"
        until(lambda: answers(ready), "the router", self.processes["router"])

    def start_look_up(self, transport: str) -> None:
        """The transport alone, with a look-up for a decision."""
        self.start_router("aio")  # it writes Envoy's endpoints file
        self.processes.pop("router").stop()
        listen = f"{HOST}:{self.router_ports.grpc}"
        argv = [sys.executable, "-m", "tests.bench.lookup_router", "--transport", transport, "--listen", listen]
        path = ":".join(str(_ROOT / part) for part in (".", "router", "solver"))
        self._start("router", Command("lookup", [*argv, *self.addresses], {"PYTHONPATH": path}))

    def start_envoy(self, edit: Callable[[dict[str, Any]], None] = as_it_is) -> None:
        """Our Envoy; ``edit`` changes its configuration."""
        listen, admin = self._ports.take(), self._ports.take()
        layout = Layout(edit=edit)
        self._start("Envoy", parts.envoy_before(layout, [self.router_ports], listen, admin, self.directory))
        self.url, self._admin = f"http://{HOST}:{listen}", f"http://{HOST}:{admin}"
        until(lambda: answers(f"{self.url}/health") and self._asks(), "Envoy", self.processes["Envoy"])

    def unplanned(self) -> int:
        """Requests that Envoy sent on without a decision, because none came in time; 0 where nobody is asked."""
        if not self._admin:
            return 0
        last = _get(f"{self._admin}/stats?filter=ext_proc.failure_mode_allowed").rpartition(":")[2]
        return int(last or 0)

    def _asks(self) -> bool:
        """Whether Envoy finds the router healthy, if it knows one."""
        lines = _get(f"{self._admin}/clusters").splitlines()
        flags = [line for line in lines if line.startswith("kvplan-router::") and "::health_flags::" in line]
        return all(line.endswith("::healthy") for line in flags)

    def start_vllm_router(self, policy: str) -> None:
        """The router that the vLLM project publishes, in an environment of its own."""
        port, metrics = self._ports.take(), self._ports.take()
        argv = [
            str(_vllm_router()), "--host", HOST, "--port", str(port), "--policy", policy, "--log-level", "error",
            "--prometheus-port", str(metrics), "--worker-urls", *(f"http://{a}" for a in self.addresses),
        ]  # fmt: skip
        self._start("router", Command("vllm-router", argv))
        self.url = f"http://{HOST}:{port}"
        until(lambda: answers(f"{self.url}/health"), "vllm-router", self.processes["router"])

    def _start(self, role: str, command: Command) -> None:
        process = Process(command, self.directory)
        self._stack.callback(process.stop)
        process.start()
        self.processes[role] = process


@contextmanager
def plane() -> Iterator[Plane]:
    """Destinations; nothing before them yet."""
    with ExitStack() as stack:
        yield Plane(stack)


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5) as response:
        text: str = response.read().decode()
        return text


def _destinations(addresses: Sequence[str], directory: Path) -> Command:
    listeners = [_listener(address.rpartition(":")[2]) for address in addresses]
    config = directory / "destinations.yaml"
    config.write_text(yaml.safe_dump({"static_resources": {"listeners": listeners}}))
    argv = [str(ENVOY), "-c", str(config), "--concurrency", "1", "-l", "error"]
    return Command("destinations", [*argv, "--base-id", addresses[0].rpartition(":")[2]])


def _listener(port: str) -> dict[str, Any]:
    answer = {"status": 200, "body": {"inline_string": _ANSWER}}
    routes = [{"match": {"prefix": "/"}, "direct_response": answer}]
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


def _vllm_router() -> Path:
    """The installed command; installed on first use, because its dependencies are not ours."""
    home = _ROOT / "out" / "bench" / "vllm-router"
    command = home / "bin" / "vllm-router"
    if not command.exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        subprocess.run([str(home / "bin" / "pip"), "install", "--quiet", VLLM_ROUTER], check=True)
    return command


def with_generation(table: WrittenTable, generation: int) -> WrittenTable:
    """The same plan as a newer table, with the homes moved on by one."""
    homes = {key: [(numbers[0] + generation) % DESTINATIONS] for key, numbers in table.homes.items()}
    return replace(table, generation=table.generation + generation, homes=homes)
