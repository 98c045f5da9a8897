"""Metrics of the operator: bounded, documented, gone with the fleet."""

import re
from pathlib import Path

from prometheus_client import generate_latest

from kvplan_operator.metrics import Metrics, SolveOutcome, TickOutcome

DOCUMENT = Path(__file__).parents[2] / "docs" / "operator-metrics.md"


def used(fleet: str) -> Metrics:
    """Metrics in which a fleet has a series of each family."""
    metrics = Metrics()
    metrics.ticks.labels(fleet, TickOutcome.DONE).inc()
    metrics.solves.labels(fleet, SolveOutcome.SOLVED).inc()
    metrics.status_writes.labels("ServingFleet").inc()
    metrics.condition.labels(fleet, "Ready", "True").set(1)
    for gauge in (metrics.solve_gap, metrics.last_solve, metrics.rollout_steps, metrics.rollout_step):
        gauge.labels(fleet).set(1)
    for gauge in (metrics.table_generation, metrics.table_keys):
        gauge.labels(fleet).set(1)
    return metrics


def text(metrics: Metrics) -> str:
    return generate_latest(metrics.registry).decode()


def test_the_series_of_a_fleet_go_with_it_and_those_of_others_stay() -> None:
    metrics = used("default/a")
    metrics.ticks.labels("default/b", TickOutcome.DONE).inc()
    metrics.forget("default/a")
    assert 'fleet="default/a"' not in text(metrics)
    assert 'fleet="default/b"' in text(metrics)


def test_forgetting_a_fleet_that_has_no_series_is_nothing() -> None:
    metrics = Metrics()
    metrics.forget("default/never")
    assert "default/never" not in text(metrics)


def test_every_metric_has_a_row_in_the_documents_and_every_row_a_metric() -> None:
    families = {family.name: family for family in used("default/a").registry.collect()}
    exported = {f"{name}_total" if family.type == "counter" else name for name, family in families.items()}
    rows = dict(re.findall(r"^\| (kvplan_operator_\w+) \| ([^|]+) \|", DOCUMENT.read_text(), re.MULTILINE))
    assert set(rows) == exported


def test_rows_name_type_and_labels_as_they_are() -> None:
    rows = dict(re.findall(r"^\| (kvplan_operator_\w+) \| ([^|]+) \|", DOCUMENT.read_text(), re.MULTILINE))
    for family in used("default/a").registry.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = sorted({label for sample in family.samples for label in sample.labels if label != "le"})
        stated = rows[name].split("{")
        assert stated[0].strip() == family.type
        assert sorted(re.findall(r"\w+", stated[1] if len(stated) > 1 else "")) == labels
