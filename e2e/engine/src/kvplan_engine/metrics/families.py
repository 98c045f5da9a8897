"""Metric families with the labels that all of an engine's metrics carry."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from kvplan_engine.metrics.buckets import Edges

LABELS = ("model_name", "engine")
ENGINE = "0"
"""One engine per server: the data-parallel rank is always the first."""


class Families:
    """Makes families in a registry of their own, with the labels of one engine.

    Args:
        model_name: the first name the model is served under.
    """

    def __init__(self, model_name: str) -> None:
        self.registry = CollectorRegistry()
        self.model_name = model_name

    def counter(self, name: str, text: str) -> Counter:
        """A counter."""
        return Counter(f"vllm:{name}", text, LABELS, registry=self.registry).labels(self.model_name, ENGINE)

    def split_counter(self, name: str, text: str, label: str, values: tuple[str, ...]) -> dict[str, Counter]:
        """A counter split by one more label; every value is there from the start."""
        family = Counter(f"vllm:{name}", text, (*LABELS, label), registry=self.registry)
        return {value: family.labels(self.model_name, ENGINE, value) for value in values}

    def histogram(self, name: str, text: str, edges: Edges) -> Histogram:
        """A histogram."""
        family = Histogram(f"vllm:{name}", text, LABELS, buckets=edges, registry=self.registry)
        return family.labels(self.model_name, ENGINE)

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """A gauge that is read when somebody asks."""
        family = Gauge(f"vllm:{name}", text, LABELS, registry=self.registry)
        family.labels(self.model_name, ENGINE).set_function(read)

    def split_gauge(self, name: str, text: str, label: str, values: dict[str, Callable[[], float]]) -> None:
        """A gauge split by one more label."""
        family = Gauge(f"vllm:{name}", text, (*LABELS, label), registry=self.registry)
        for value, read in values.items():
            family.labels(self.model_name, ENGINE, value).set_function(read)

    def info(self, name: str, text: str, facts: dict[str, object]) -> None:
        """A gauge of 1 whose labels are the message."""
        family = Gauge(f"vllm:{name}", text, tuple(facts), registry=self.registry)
        family.labels(*map(str, facts.values())).set(1)
