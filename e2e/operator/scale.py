"""How much an operator of many fleets needs, and how soon it answers; prints a table (`make scale`).

Inputs: numbers of fleets, of groups per fleet, and the seconds that are watched at rest. Outputs: Markdown. What it
aims at is in docs/benchmarks.md. On fewer cores than the control plane, the simulated nodes and the operator would like
to have, times are those of the machine more than those of the operator.
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.harness.cluster import Cluster
from e2e.operator.operator_process import LONG_LEASE, Operator
from e2e.operator.scale_fleets import documents, nodes
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.reflector import Key, Reflector
from kvplan_operator.kube.resources import SERVING_FLEETS

NAMESPACE, USER = "scale", "kvplan-operator"
IN_FORCE_SECONDS, SETTLE_SECONDS, EDIT_SECONDS, BATCH = 3_600.0, 60.0, 60.0, 20
Object = dict[str, Any]
Row = tuple[str, str, str]


@dataclass(frozen=True)
class Seen:
    """What is looked at of a fleet.

    Attributes:
        as_planned: whether its plan is in force.
        observed: generation that its status is about.
    """

    as_planned: bool
    observed: int

    @classmethod
    def of(cls, fleet: Object) -> "Seen":
        """The projection of an object."""
        status = fleet.get("status", {})
        conditions = {(c["type"], c["status"], c["reason"]) for c in status.get("conditions", ())}
        return cls(("Ready", "True", "AsPlanned") in conditions, int(status.get("observedGeneration", -1)))


class Fleets:
    """The fleets as a watch tells of them."""

    def __init__(self, client: Client) -> None:
        self._changed = asyncio.Event()
        self._watch = Reflector[Seen](
            client, SERVING_FLEETS, namespace=NAMESPACE, project=Seen.of, on_change=self._hear
        )
        self._client = client

    def run(self) -> "asyncio.Task[None]":
        """Follow them until cancelled."""
        return asyncio.create_task(self._watch.run())

    async def wait_in_force(self, fleets: int) -> float:
        """Return, once every fleet is as planned, how long that took, seconds."""
        began = time.monotonic()
        async with asyncio.timeout(IN_FORCE_SECONDS):
            while sum(seen.as_planned for seen in self._watch.objects.values()) < fleets:
                await self._next()
        return time.monotonic() - began

    async def edit(self, fleet: Key, number: int) -> float:
        """Seconds from the answer to an edit until the status is about it."""
        metadata = {"namespace": fleet[0], "name": fleet[1]}
        patch = {"metadata": metadata, "spec": {"rollout": {"deadlineSeconds": 5_000 + number}}}
        answer = await self._client.merge_patch(SERVING_FLEETS, patch)
        generation, began = int(answer["metadata"]["generation"]), time.monotonic()
        async with asyncio.timeout(EDIT_SECONDS):
            while self._watch.objects[fleet].observed < generation:
                await self._next()
        return time.monotonic() - began

    @property
    def keys(self) -> list[Key]:
        """Their namespaces and names."""
        return sorted(self._watch.objects)

    async def _next(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _hear(self, _key: Key, _old: Seen | None, _new: Seen | None) -> None:
        self._changed.set()


def memory(pid: int) -> Iterator[int]:
    """Resident MiB of a process, then of those it started."""
    resident = re.search(r"^VmRSS:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    yield int(resident.group(1)) // 1024 if resident else 0
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with suppress(FileNotFoundError):
            yield from memory(int(child))


def calls_since(log: Path, start: int) -> Counter[str]:
    """Requests of the operator in the audit log from a byte on, by verb and kind; a watch counts when it ends."""
    with log.open("rb") as lines:
        lines.seek(start)
        entries = (json.loads(line) for line in lines)
        return Counter(_said(entry) for entry in entries if entry["user"]["username"] == USER)


def _said(entry: Object) -> str:
    about = entry.get("objectRef", {})
    return f"{entry['verb']} {about.get('resource', entry['requestURI'])}"


async def most_solves(operator: Operator, stop: asyncio.Event) -> int:
    """The most solver processes that its metrics showed until told to stop, looking each half second."""
    most = 0
    while not stop.is_set():
        with suppress(OSError):  # a busy machine may not answer in time
            text = await asyncio.to_thread(operator.metrics)
            found = re.search(r"^kvplan_operator_solves_running (\S+)$", text, re.MULTILINE)
            most = max(most, int(float(found.group(1))) if found else 0)
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), 0.5)
    return most


async def measure(cluster: Cluster, operator: Operator, fleets: int, groups: int, rest: float, edits: int) -> list[Row]:
    """Apply the fleets and look at the operator."""
    client = await Client.connect(cluster.kubeconfig)
    watch, stop = Fleets(client), asyncio.Event()
    following, solves = watch.run(), asyncio.create_task(most_solves(operator, stop))
    try:
        await asyncio.to_thread(apply, cluster, fleets, groups)
        in_force = await watch.wait_in_force(fleets)
        stop.set()
        await asyncio.sleep(SETTLE_SECONDS)  # events of the last transitions are written beside the looks
        start = operator.audit_position()
        await asyncio.sleep(rest)  # what is measured is that nothing happens
        calls = calls_since(cluster.plane.audit_log, start)
        resident = list(memory(operator.process.pid))
        keys = watch.keys
        waits = sorted([await watch.edit(keys[n * 7 % len(keys)], n) for n in range(edits)])
        return _rows(in_force, resident, _rates(calls, rest), waits, await solves)
    finally:
        following.cancel()
        stop.set()
        await asyncio.gather(following, solves, return_exceptions=True)
        await client.close()


def apply(cluster: Cluster, fleets: int, groups: int) -> None:
    """Apply every fleet, some at a time."""
    for first in range(0, fleets, BATCH):
        batch = range(first, min(first + BATCH, fleets))
        cluster.kubectl.apply(*(item for n in batch for item in documents(n, groups, NAMESPACE)))


def _rates(calls: Counter[str], seconds: float) -> tuple[float, str]:
    """Calls a second, and what the most frequent are."""
    told = ", ".join(f"{what} {count / seconds:.2f}" for what, count in calls.most_common(4))
    return calls.total() / seconds, told


def _rows(in_force: float, resident: list[int], calls: tuple[float, str], waits: list[float], solves: int) -> list[Row]:
    p99 = statistics.quantiles(waits, n=100, method="inclusive")[98]
    rate, kinds = calls
    return [
        ("every fleet in force after its apply", f"{in_force:.0f} s", ""),
        ("resident memory of the controller", f"{resident[0]} MiB", "≤ 600 MiB"),
        ("resident memory with its solver processes", f"{sum(resident)} MiB", ""),
        ("API calls at rest", f"{rate:.2f} a second ({kinds})", "≤ 2"),
        ("an edit seen in status, P50", f"{statistics.median(waits):.2f} s", ""),
        ("an edit seen in status, P99", f"{p99:.2f} s", "≤ 5 s"),
        ("solves at a time, at most", str(solves), "≤ 2"),
    ]


def table(rows: list[Row]) -> str:
    """Rows as Markdown."""
    head = ("what", "measured", "aim")
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---", "---:", "---:"), *rows))


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description="Many fleets under one operator.")
    parser.add_argument("--fleets", type=int, default=200)
    parser.add_argument("--groups", type=int, default=10, help="of each fleet")
    parser.add_argument("--rest", type=float, default=120.0, help="seconds that are watched at rest")
    parser.add_argument("--edits", type=int, default=200)
    wanted = parser.parse_args()
    with Cluster(nodes(wanted.fleets, wanted.groups)) as cluster:
        cluster.install_crds()
        cluster.kubectl("create", "namespace", NAMESPACE)
        user = cluster.plane.identity(USER, "system:masters")
        operator = Operator(cluster, NAMESPACE, KUBECONFIG=str(user), LOG_LEVEL="WARNING", **LONG_LEASE)
        rows = asyncio.run(measure(cluster, operator, wanted.fleets, wanted.groups, wanted.rest, wanted.edits))
        print(f"{wanted.fleets} fleets, {wanted.fleets * wanted.groups} pods, {os.cpu_count()} cores\n")
        print(table(rows))


if __name__ == "__main__":
    main()
