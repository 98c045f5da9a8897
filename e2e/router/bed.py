"""Envoy, the router and upstreams on loopback, in seconds: what data-plane tests and benchmarks start.

In: how many upstreams of which kind, routers, options. Out: a URL that goes through Envoy, and a grip on every
process. Nothing outlives this process; logs go with a success and stay after a failure.
"""

import json
import shutil
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from e2e.harness.errors import NotReady
from e2e.harness.ports import PortLease
from e2e.harness.process import Command, Process
from e2e.harness.readiness import answers, until
from e2e.router import parts
from e2e.router.parts import HOST, PLAIN, Layout, RouterPorts
from e2e.router.tables import SECRET, WrittenTable

_LOOK_SECONDS = 0.02


class Bed:
    """The running parts.

    Attributes:
        directory: of this run.
        url: of Envoy.
        addresses: of the upstreams.
        upstreams: their processes.
        routers: the router processes.
        router_ports: their ports.
        envoy: its process.
        plain: the table it starts with: every upstream serves, no key is planned.
        table: the last one published.
    """

    def __init__(self, layout: Layout = PLAIN) -> None:
        self.layout = layout
        self._stack = ExitStack()
        self._keep = False

    def __enter__(self) -> Self:
        """Start everything and wait until requests are answered by plan."""
        self.directory = Path(tempfile.mkdtemp(prefix="kvplan-data-plane-"))
        self.ports = PortLease()
        self._stack.callback(self.ports.release)
        try:
            self._start()
        except BaseException:
            self.keep_logs()
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop everything."""
        if kind is not None:
            self.keep_logs()
        self._stack.close()
        if not self._keep:
            shutil.rmtree(self.directory)

    def keep_logs(self) -> None:
        """Leave the logs where they are and say so."""
        self._keep = True
        print(f"logs of the data plane: {self.directory}", file=sys.stderr)

    # ---- what tests do

    def publish(self, table: WrittenTable, wait: bool = True) -> None:
        """Replace the routers' table, and wait until all of them have it."""
        self.table = table
        self.publish_text(table.text())
        if wait:
            for number in range(self.layout.routers):
                self.until(lambda n=number: self.order(n) == (table.epoch, table.generation), "the table in force")  # type: ignore[misc]

    def publish_text(self, text: str) -> None:
        """Replace the routers' table by any text, in one step."""
        beside = self.directory / "index.new"
        beside.write_text(text)
        beside.replace(self.directory / parts.INDEX)

    def order(self, router: int = 0) -> tuple[int, int]:
        """(epoch, generation) that a router acknowledges."""
        state = self.state(router)
        return state["epoch"], state["generation"]

    def state(self, router: int = 0) -> dict[str, Any]:
        """What a router says of itself."""
        found: dict[str, Any] = json.loads(self._get(f"http://{HOST}:{self.router_ports[router].admin}/state"))
        return found

    def metrics(self, router: int = 0) -> str:
        """A router's metrics page."""
        return self._get(f"http://{HOST}:{self.router_ports[router].admin}/metrics")

    def load(self, upstream: int) -> int:
        """Open requests of one upstream."""
        return int(json.loads(self._get(f"http://{self.addresses[upstream]}/load"))["server_load"])

    def engine_page(self, upstream: int) -> str:
        """The metrics page of one upstream."""
        return self._get(f"http://{self.addresses[upstream]}/metrics")

    def in_flight(self) -> dict[str, int]:
        """Requests in flight by slot, over all routers."""
        counted: list[dict[str, int]] = [self.state(router)["inFlight"] for router in range(self.layout.routers)]
        return dict(sum(map(Counter, counted), Counter[str]()))

    def until(self, check: Callable[[], bool], what: str, seconds: float = 10.0) -> None:
        """Wait until something holds.

        Raises:
            NotReady: when it does not in time.
        """
        deadline = time.monotonic() + seconds
        while not check():
            if time.monotonic() > deadline:
                raise NotReady(f"{what} did not happen within {seconds:g} s; see {self.directory}")
            time.sleep(_LOOK_SECONDS)

    def start_router(self, number: int) -> None:
        """Start a router (again) and wait until it serves."""
        self.routers[number].start()
        self._until_serving(number)

    def _upstreams_known(self) -> bool:
        """Whether all upstreams are healthy in the routers' eyes: the first probe may have come too early."""
        return (self.directory / parts.ENDPOINTS).read_text().count('"HEALTHY"') == len(self.addresses)

    def _until_serving(self, number: int) -> None:
        ready = f"http://{HOST}:{self.router_ports[number].admin}/readyz"
        until(lambda: answers(ready), "the router serving", self.routers[number], 30)

    def endpoints_healthy(self) -> bool:
        """Whether Envoy sees every router as healthy."""
        text = self._get(f"http://{HOST}:{self.envoy_admin}/clusters")
        lines = [
            line for line in text.splitlines() if line.startswith("kvplan-router::") and "::health_flags::" in line
        ]
        return len(lines) == self.layout.routers and all(line.endswith("::healthy") for line in lines)

    def envoy_counter(self, name: str) -> int:
        """One of Envoy's counters."""
        text = self._get(f"http://{HOST}:{self.envoy_admin}/stats?filter=^{name}$")
        return int(text.rpartition(":")[2])

    # ---- starting

    def _start(self) -> None:
        started = [] if self.layout.running else [f"{HOST}:{self.ports.take()}" for _ in range(self.layout.upstreams)]
        self.upstreams = [self._process(parts.upstream(self.layout, n, a)) for n, a in enumerate(started)]
        self.addresses = [*self.layout.running, *started]
        (self.directory / parts.SECRET_FILE).write_bytes(SECRET)
        self.plain = self.table = WrittenTable(self.addresses)
        self.publish(self.table, wait=False)
        self.router_ports = [RouterPorts(*(self.ports.take() for _ in range(3))) for _ in range(self.layout.routers)]
        self.routers = [self._process(self._router(n)) for n in range(self.layout.routers)]
        for process in (*self.upstreams, *self.routers):
            process.start()
        for number, process in enumerate(self.upstreams):
            until(lambda n=number: answers(f"http://{self.addresses[n]}/health"), "upstream", process, 30)  # type: ignore[misc]
        for number in range(self.layout.routers):
            self._until_serving(number)
        until(self._upstreams_known, "the routers finding the upstreams", self.routers[0], 30)
        self._start_envoy()

    def _start_envoy(self) -> None:
        port, self.envoy_admin = self.ports.take(), self.ports.take()
        self.url = f"http://{HOST}:{port}"
        command = parts.envoy_before(self.layout, self.router_ports, port, self.envoy_admin, self.directory)
        self.envoy = self._process(command)
        self.envoy.start()
        until(lambda: answers(f"http://{HOST}:{self.envoy_admin}/ready"), "Envoy", self.envoy, 30)
        until(self.endpoints_healthy, "Envoy seeing the routers", self.envoy, 30)

    def _process(self, command: Command) -> Process:
        process = Process(command, self.directory)
        self._stack.callback(process.stop)
        return process

    def _router(self, number: int) -> Command:
        return parts.router(self.layout, number, self.router_ports, self.directory)

    def _get(self, url: str) -> str:
        with urllib.request.urlopen(url, timeout=5) as response:  # noqa: S310 - loopback
            text: str = response.read().decode()
            return text
