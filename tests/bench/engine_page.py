"""Figures of an engine's metrics page."""

from prometheus_client.parser import text_string_to_metric_families


def total(page: str, series: str) -> float:
    """Sum of a series over its labels."""
    families = text_string_to_metric_families(page)
    return sum(sample.value for family in families for sample in family.samples if sample.name == series)
