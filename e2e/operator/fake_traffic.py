"""A Prometheus that tells of a fleet's traffic as a test says, and fails as a test says, while an operator asks it.

Inputs: rates by class, noise, a fault; all may change at any time. Output: answers to the operator's own queries.
"""

import random
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

from kvplan_operator.model.fleet_queries import RATE_WINDOW_SECONDS, RouterPart
from kvplan_operator.model.promql import PART
from tests.fake_prometheus import Answering, body, serving, vector

PROMPT_TOKENS, OUTPUT_TOKENS, LATENCY_SECONDS = 1250.0, 200.0, 4.0
WINDOW_SECONDS = 3600
GAPS, LENGTHS = "_interarrival_seconds_bucket", "_output_tokens_bucket"
_SHARES = {
    GAPS: {0.05: 0.45, 0.1: 0.7, 0.5: 0.98, 1.0: 1.0},
    "_prompt_tokens_bucket": {512.0: 0.2, 1024.0: 0.5, 2048.0: 0.9, 4096.0: 0.97, 8192.0: 1.0},
    LENGTHS: {64.0: 0.3, 128.0: 0.55, 256.0: 0.8, 1024.0: 0.98, 2048.0: 1.0},
    "_latency_seconds_bucket": {2.0: 0.1, 4.0: 0.5, 8.0: 0.95, 16.0: 1.0},
}
"""Share of the requests up to each edge, by the metric asked for."""

Row = tuple[dict[str, str], str]


@dataclass
class Traffic:
    """What the Prometheus says.

    Attributes:
        url: of its API.
        rates: requests per second by class.
        noise: largest relative error of rates, of means and of counts of lengths, drawn anew for each answer. What two
            numbers make together has the error of one: a histogram and its sum come from the same scrape.
        fault: answers in its place; None while it is well.
        warnings: of each answer, in Prometheus' own words.
        asked: queries answered so far.
    """

    url: str = ""
    rates: Mapping[str, float] = field(default_factory=dict)
    noise: float = 0.0
    fault: Answering | None = None
    warnings: tuple[str, ...] = ()
    asked: int = 0
    _random: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311 - noise

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one query."""
        self.asked += 1
        if self.fault is not None:
            self.fault(handler)
            return
        query, now = parse_qs(urlsplit(handler.path).query)["query"][0], time.time()
        vector(self._rows(query, now), now, warnings=list(self.warnings))(handler)

    def _rows(self, query: str, now: float) -> list[Row]:
        if query.startswith("min_over_time(max by (class)"):
            return [({"class": name}, str(now - RATE_WINDOW_SECONDS)) for name in self.rates]
        if query.startswith("max by (pod) (timestamp("):
            return [({"pod": "router-0"}, str(now - 5))]
        if "label_replace" in query and "kvplan_router_requests_total" in query:
            return [row for name, rate in self.rates.items() for row in self._sums(name, rate)]
        metric = next((metric for metric in _SHARES if f"kvplan_router{metric}" in query), None)
        if metric is None or "offset" in query:
            return []
        return [row for name, rate in self.rates.items() for row in self._buckets(name, rate, metric)]

    def _sums(self, name: str, rate: float) -> Iterator[Row]:
        counted = rate * WINDOW_SECONDS
        sums = {
            RouterPart.ARRIVALS: rate * RATE_WINDOW_SECONDS * self._factor(),
            RouterPart.GAP_SECONDS: RATE_WINDOW_SECONDS if rate else 0.0,
            RouterPart.PROMPT_TOKENS: counted * PROMPT_TOKENS * self._factor(),
            RouterPart.LATENCY_SECONDS: counted * LATENCY_SECONDS * self._factor(),
        }
        return (({"class": name, PART: part}, str(value)) for part, value in sums.items())

    def _buckets(self, name: str, rate: float, metric: str) -> Iterator[Row]:
        counted = rate * (RATE_WINDOW_SECONDS if metric == GAPS else WINDOW_SECONDS)
        shares, factor = _SHARES[metric], self._factor() if metric == LENGTHS else 1.0
        edges = {**{f"{edge:g}": share for edge, share in shares.items()}, "+Inf": 1.0}
        return (({"class": name, "le": edge}, str(counted * share * factor)) for edge, share in edges.items())

    def _factor(self) -> float:
        return 1.0 + self._random.uniform(-self.noise, self.noise)


@contextmanager
def prometheus(traffic: Traffic) -> Iterator[Traffic]:
    """A server for the traffic; ends with the block."""
    with serving(traffic.answer) as seen:
        traffic.url = seen.url
        yield traffic


def not_a_number(handler: BaseHTTPRequestHandler) -> None:
    """NaN for everything, as a rate over nothing is."""
    labels = {"class": "chat", "pod": "router-0", "le": "1", PART: RouterPart.ARRIVALS}
    vector([(labels, "NaN")], time.time())(handler)


def closed(handler: BaseHTTPRequestHandler) -> None:
    """No answer at all: the connection closes."""
    handler.close_connection = True


def slow(handler: BaseHTTPRequestHandler) -> None:
    """Nothing for longer than the operator waits."""
    threading.Event().wait(3)
    handler.close_connection = True


FAULTS: Mapping[str, Answering] = {
    "it is down": closed,
    "it answers with an error": body(b'{"status":"error","errorType":"unavailable"}', 503),
    "it answers with something else": body(b"<html>welcome</html>"),
    "it says nothing in time": slow,
    "it knows no series": vector([]),
    "it knows no number": not_a_number,
}
"""What is wrong with a Prometheus, by what a person would say."""
