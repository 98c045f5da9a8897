"""The operator's own metrics.

Inputs: what ticks, solves and writes report. Output: one Prometheus registry. Every label is bounded: fleets by their
objects, everything else by an enumeration. The series of a fleet go when the fleet goes. docs/operator-metrics.md has
one row for each; a test compares the two. Must not: carry text of an object as a label, the fleet's name aside.
"""

from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase

_TICK_BUCKETS = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SOLVE_BUCKETS = (0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300)


class TickOutcome(StrEnum):
    """How a look at a fleet ended."""

    DONE = "done"
    FAILED = "failed"
    CONFLICT = "conflict"
    """An object had changed in between; the next look sees it."""


class SolveOutcome(StrEnum):
    """How a solve ended."""

    SOLVED = "solved"
    INCUMBENT = "incumbent"
    """The time was up: the best plan that was streamed before."""
    REFUSED = "refused"
    """No plan exists, or the inputs cannot be planned from."""
    FAILED = "failed"
    CANCELLED = "cancelled"
    """The fleet changed or went."""


class Metrics:
    """One set of metrics in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.leader = Gauge("kvplan_operator_leader", "1 where this process holds the Lease.", registry=self.registry)
        self.echo_age = Gauge(
            "kvplan_operator_watch_echo_age_seconds", "Time since the watches were last heard.", registry=self.registry
        )
        self.fleets = Gauge("kvplan_operator_fleets", "ServingFleets looked after.", registry=self.registry)
        self.solves_running = Gauge("kvplan_operator_solves_running", "Solver processes.", registry=self.registry)
        self.solves_waiting = Gauge("kvplan_operator_solves_waiting", "Solves in the queue.", registry=self.registry)
        self.tick_seconds = Histogram(
            "kvplan_operator_tick_seconds", "Time of one look.", registry=self.registry, buckets=_TICK_BUCKETS
        )
        self.solve_seconds = Histogram(
            "kvplan_operator_solve_seconds", "Time of one solve.", registry=self.registry, buckets=_SOLVE_BUCKETS
        )
        self.ticks = self._counter("ticks_total", "Looks at a fleet by outcome.", "outcome")
        self.solves = self._counter("solves_total", "Solves by outcome.", "outcome")
        self.status_writes = Counter(
            "kvplan_operator_status_writes_total", "Statuses written by kind.", ("kind",), registry=self.registry
        )
        self.solve_gap = self._gauge("solve_gap_ratio", "Proven gap of the latest solve.")
        self.last_solve = self._gauge("last_solve_timestamp_seconds", "When the latest solve ended.")
        self.condition = self._gauge("condition", "1 for the status of each condition of the fleet.", "type", "status")
        self.rollout_steps = self._gauge("rollout_steps", "Steps of the rollout under way.")
        self.rollout_step = self._gauge("rollout_step", "Steps of it that are done.")
        self.table_generation = self._gauge("table_generation", "Generation of the table published last.")
        self.table_keys = self._gauge("table_keys", "Keys with a fixed home in it.")

    def forget(self, fleet: str) -> None:
        """Drop every series of a fleet, written ``namespace/name``."""
        for metric in self._of_fleets:
            metric.remove_by_labels({"fleet": fleet})

    @property
    def _of_fleets(self) -> tuple[MetricWrapperBase, ...]:
        return (
            self.ticks, self.solves, self.solve_gap, self.last_solve, self.condition,
            self.rollout_steps, self.rollout_step, self.table_generation, self.table_keys,
        )  # fmt: skip

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"kvplan_operator_{name}", meaning, ("fleet", *labels), registry=self.registry)

    def _gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        return Gauge(f"kvplan_operator_{name}", meaning, ("fleet", *labels), registry=self.registry)
