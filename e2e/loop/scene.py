"""What is, in one value: plan, groups, reservations, classes, figures, conditions.

Inputs: a world, a running load. Outputs: a frozen ``Scene``. It reads what anybody may read: objects, the routers'
state, Prometheus. What cannot be read yet is empty.
"""

import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from e2e.loop import looking
from e2e.loop.asking import End
from e2e.loop.load import Tally
from e2e.loop.manifests import FLEET
from e2e.loop.measures import Measures, Period, Prometheus
from e2e.loop.world import NAMESPACE, World

RECENT_SECONDS = 20.0
"""Over which the figures of the screen are."""


@dataclass(frozen=True)
class Slot:
    """One group as routers see it: tokens reserved on it and its budget."""

    name: str
    reserved: int
    budget: int
    state: str


@dataclass(frozen=True)
class ClassScene:
    """One class: measured rate per second, reservation in tokens, routes in thousandths, ends as clients saw them."""

    name: str
    rate: float
    reservation: int
    routes: tuple[tuple[str, int], ...]
    whole: int
    shed: int
    failed: int
    truncated: int


@dataclass(frozen=True)
class Condition:
    """One condition of the fleet."""

    type: str
    status: str
    reason: str
    message: str


@dataclass(frozen=True)
class Scene:
    """Everything the screen shows; figures are NaN where nothing was measured."""

    plan: str
    generation: int
    keys: int
    nodes: Mapping[str, tuple[Slot, ...]]
    classes: tuple[ClassScene, ...]
    conditions: tuple[Condition, ...]
    hit_rate: float
    preemptions: float
    load_ratio: float
    open: int


class Observer:
    """Reads scenes."""

    def __init__(self, world: World) -> None:
        self._world, self._prometheus = world, Prometheus(world.prometheus, NAMESPACE)

    def scene(self, tally: Tally, open_requests: int) -> Scene:
        """The scene now."""
        status = self._world.get("fleet", FLEET).get("status", {})
        index, now = self._index(), time.time()
        figures = self._prometheus.measures(Period(now - RECENT_SECONDS, now))
        table = status.get("table", {})
        return Scene(
            plan=status.get("currentPlan", {}).get("name", ""),
            generation=table.get("generation", 0),
            keys=table.get("keys", 0),
            nodes=self._nodes(index),
            classes=tuple(self._class(item, index, tally) for item in self._world.get("rclass")["items"]),
            conditions=tuple(_condition(one) for one in status.get("conditions", ())),
            hit_rate=_known(figures.hit_rate),
            preemptions=_known(figures.preemptions),
            load_ratio=_known(figures.load_ratio),
            open=open_requests,
        )

    def measures(self, period: Period) -> Measures:
        """Figures of a period."""
        return self._prometheus.measures(period)

    def _index(self) -> Any:
        found = self._world.get("configmaps", f"--field-selector=metadata.name={FLEET}-table")["items"]
        return looking.index(self._world) if found else {"slots": [], "classes": []}

    def _nodes(self, index: Any) -> dict[str, tuple[Slot, ...]]:
        places = {pod["metadata"]["uid"]: pod["spec"].get("nodeName", "") for pod in self._engines()}
        reserved = self._reserved()
        nodes: dict[str, list[Slot]] = {node["metadata"]["name"]: [] for node in self._world.get("nodes")["items"]}
        for slot in index["slots"]:
            node = places.get(slot["podUID"])
            if node:
                shown = Slot(slot["slot"], reserved[slot["slot"]], int(slot["budgetTokens"]), slot["state"])
                nodes[node].append(shown)
        return {name: tuple(slots) for name, slots in nodes.items()}

    def _engines(self) -> Any:
        return self._world.get("pods", looking.ENGINES)["items"]

    def _reserved(self) -> Counter[str]:
        total: Counter[str] = Counter()
        try:
            for said in looking.routers(self._world):
                total.update(said["reserved"])
        except OSError:  # one that is going, or has not come yet
            pass
        return total

    def _class(self, item: Any, index: Any, tally: Tally) -> ClassScene:
        name, status = item["metadata"]["name"], item.get("status", {})
        known: Any = next((c for c in index["classes"] if c["name"] == name), {"routes": []})
        ended = {end: tally.ends[name, end] for end in End}
        return ClassScene(
            name=name,
            rate=status.get("requestsPerSecondMilli", 0) / 1000,
            reservation=status.get("reservationTokens", 0),
            routes=tuple((route["configuration"], route["shareMilli"]) for route in known["routes"]),
            whole=ended[End.WHOLE],
            shed=ended[End.SHED],
            failed=ended[End.FAILED],
            truncated=ended[End.TRUNCATED],
        )


def _condition(found: Any) -> Condition:
    return Condition(found["type"], found["status"], found["reason"], found.get("message", ""))


def _known(value: float) -> float:
    return 0.0 if math.isnan(value) else value
