"""How soon changed rates become a new plan; prints a table (`python -m e2e.operator.replan`).

Inputs: how many times the rates change. Output: Markdown. The sample fleet, three classes on three nodes of eight GPUs,
states its rates. They double and halve in turn, so that the plan before no longer fits, and never return to what was
planned for before, so that every plan is another one. What is timed begins with the API server's answer to the change
of the last class and ends when a watch tells of the new RoutingPlan. On a machine that is busy otherwise, times are
those of the machine.
"""

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from e2e.harness.cluster import Cluster
from e2e.harness.pages import total
from e2e.harness.simulated_nodes import sample_nodes
from e2e.operator.operator_process import LONG_LEASE, SAMPLE, Operator
from e2e.operator.scale import table
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.reflector import Key, Reflector
from kvplan_operator.kube.resources import REQUEST_CLASSES, ROUTING_PLANS

NAMESPACE, PLAN_SECONDS = "replan", 120.0
LOW_MILLI, HIGH_MILLI, STEP_MILLI = 1_500, 3_000, 5
"""Factors on the sample's rates, thousandths: at the low one six groups of four GPUs are best, at the high one not."""
Object = dict[str, Any]
Row = tuple[str, str, str]


@dataclass(frozen=True)
class Replans:
    """What was measured, seconds.

    Attributes:
        first: from the fleet's apply to its first plan.
        warm: from changed rates to another plan, one entry per change.
        solve: mean of all solves alone.
    """

    first: float
    warm: Sequence[float]
    solve: float

    def rows(self) -> list[Row]:
        """As a table."""
        return [
            ("first plan after the fleet's apply", f"{self.first:.2f} s", "≤ 30 s"),
            (f"new plan after changed rates, median of {len(self.warm)}", f"{statistics.median(self.warm):.2f} s", ""),
            ("the same, worst", f"{max(self.warm):.2f} s", "≤ 3 s"),
            ("of which the solve, mean", f"{self.solve:.2f} s", ""),
        ]


class Plans:
    """The plans of a namespace as a watch tells of them."""

    def __init__(self, client: Client) -> None:
        self._changed = asyncio.Event()
        self._watch = Reflector[Object](client, ROUTING_PLANS, namespace=NAMESPACE, on_change=self._hear)

    def run(self) -> "asyncio.Task[None]":
        """Follow them until cancelled."""
        return asyncio.create_task(self._watch.run())

    async def seconds_until_another(self, change: Awaitable[object]) -> float:
        """Make a change; seconds from its answer to a plan that was not there before."""
        known = frozenset(self._watch.objects)
        await change
        began = time.monotonic()
        async with asyncio.timeout(PLAN_SECONDS):
            while not self._watch.objects.keys() - known:
                self._changed.clear()
                await self._changed.wait()
        return time.monotonic() - began

    def _hear(self, _key: Key, _old: Object | None, _new: Object | None) -> None:
        self._changed.set()


def factors() -> Iterator[int]:
    """Factors on the rates, thousandths: high and low in turn, none of them twice."""
    step = 0
    while True:
        yield HIGH_MILLI + step
        yield LOW_MILLI + step
        step += STEP_MILLI


async def scale_rates(client: Client, documents: Sequence[Object], factor_milli: int) -> None:
    """Change what every class states."""
    for item in documents:
        if item["kind"] == "RequestClass":
            rate = item["spec"]["arrivals"]["requestsPerSecondMilli"] * factor_milli // 1_000
            metadata = {"namespace": NAMESPACE, "name": item["metadata"]["name"]}
            patch = {"metadata": metadata, "spec": {"arrivals": {"requestsPerSecondMilli": rate}}}
            await client.merge_patch(REQUEST_CLASSES, patch)


async def measure(operator: Operator, replans: int, pause: float) -> Replans:
    """Apply the sample and change its rates, each time from rest."""
    documents = list(yaml.safe_load_all(SAMPLE.read_text()))
    client = await Client.connect(operator.cluster.kubeconfig)
    plans = Plans(client)
    following = plans.run()
    try:
        first = await plans.seconds_until_another(asyncio.to_thread(operator.apply, *documents))
        warm = []
        for _, factor in zip(range(replans), factors(), strict=False):
            await asyncio.sleep(pause)  # what is timed is a fleet at rest
            warm.append(await plans.seconds_until_another(scale_rates(client, documents, factor)))
        return Replans(first, warm, mean_solve(operator.metrics()))
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await client.close()


def mean_solve(metrics: str) -> float:
    """Mean seconds of the solves that the operator's metrics tell of."""
    return total(metrics, "kvplan_operator_solve_seconds_sum") / total(metrics, "kvplan_operator_solve_seconds_count")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description="Plans that follow changed rates.")
    parser.add_argument("--replans", type=int, default=10)
    parser.add_argument("--pause", type=float, default=5.0, help="seconds between a plan and the next change")
    wanted = parser.parse_args()
    with Cluster(sample_nodes()) as cluster:
        cluster.install_crds()
        cluster.kubectl("create", "namespace", NAMESPACE)
        operator = Operator(cluster, NAMESPACE, LOG_LEVEL="WARNING", **LONG_LEASE)
        found = asyncio.run(measure(operator, wanted.replans, wanted.pause))
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
        print(table(found.rows()))


if __name__ == "__main__":
    main()
