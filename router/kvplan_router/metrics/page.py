"""The metrics page in the format that the scraper asks for. Pure but for the process's own figures.

In: a moment, the scraper's ``Accept``. Out: bytes and their content type. Ten thousand keys take a tenth of a second:
to be called off the event loop.
"""

from typing import NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder

from kvplan_router.metrics.collector import Moment, RouterCollector


class Page(NamedTuple):
    """One rendered page."""

    body: bytes
    content_type: str


def render(fleet: str, moment: Moment, accept: str) -> Page:
    """The page, as OpenMetrics where the scraper takes it."""
    registry = CollectorRegistry()
    registry.register(RouterCollector(fleet, moment))
    ProcessCollector(registry=registry)
    encode, content_type = choose_encoder(accept)
    return Page(encode(registry), content_type)
