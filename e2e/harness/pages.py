"""Metrics pages of engines and routers, read as a scraper reads them.

Inputs: the text of `/metrics`. Outputs: numbers and labels of one name. A name that the page does not have is an error:
a renamed metric must not look like a zero. Pure.
"""

from collections.abc import Mapping, Sequence

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample


def total(page: str, name: str, **labels: str) -> float:
    """Sum of the samples of a name that have the labels given; 0 where none has them.

    Raises:
        LookupError: the page does not have the name.
    """
    return sum(one.value for one in _samples(page, name) if labels.items() <= one.labels.items())


def labels(page: str, name: str) -> Mapping[str, str]:
    """Labels of the first sample of a name.

    Raises:
        LookupError: the page does not have the name.
    """
    return _samples(page, name)[0].labels


def edges(page: str, histogram: str) -> list[float]:
    """Upper edges of a histogram's buckets, ascending, without the infinite one.

    Raises:
        LookupError: the page does not have the histogram.
    """
    found = {float(one.labels["le"]) for one in _samples(page, f"{histogram}_bucket")}
    return sorted(found - {float("inf")})


def _samples(page: str, name: str) -> Sequence[Sample]:
    found = [one for family in text_string_to_metric_families(page) for one in family.samples if one.name == name]
    if not found:
        raise LookupError(f"the page has no {name}")
    return found
