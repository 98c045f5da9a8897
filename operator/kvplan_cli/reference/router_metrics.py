"""The page of the routers' metrics, read off a page that a router would serve.

Inputs: ``kvplan_router.metrics.collector``. Output: Markdown. Pure.
"""

import ast
import inspect
from collections.abc import Iterable
from itertools import pairwise

from prometheus_client.core import Metric

from kvplan_cli.reference.layout import code, table
from kvplan_router.core.histogram import HistogramValues
from kvplan_router.core.measure import ClassValues
from kvplan_router.core.reuse import ReuseValues
from kvplan_router.core.sketch import KeyCount
from kvplan_router.core.state import RouterState
from kvplan_router.core.traffic import Measurements
from kvplan_router.core.values import Outcome
from kvplan_router.metrics.collector import Moment, RouterCollector
from kvplan_router.transport.messages import InFlightMode

HEAD = """# Metrics of the routers

Generated from `kvplan_router/metrics` by `make crds`; do not edit. Served on `/metrics` of `--admin` (port 9090),
with those of the process (`process_…`). [metrics.md](../metrics.md) says which of them plans are made from,
[operator-metrics.md](../operator-metrics.md) what the operator exports.

`fleet` is `namespace/name`, `class` a RequestClass or `(unmatched)`, `slot` a destination, `key` the hash of a counted
key.

"""


def router_metrics_page() -> str:
    """The document."""
    rows = ((code(name_of(each)), f"{each.type}{_labels(each)}", each.documentation) for each in families())
    words = table(("outcome", "meaning"), ((code(word.value), said) for word, said in outcomes().items()))
    return f"{HEAD}{table(('name', 'type, labels', 'meaning'), rows)}\n`outcome`:\n\n{words}"


def families() -> Iterable[Metric]:
    """Every family, each with a sample."""
    return RouterCollector("default/chat", _moment()).collect()


def name_of(family: Metric) -> str:
    """The name under which its samples are asked for."""
    return f"{family.name}_total" if family.type == "counter" else family.name


def outcomes() -> dict[Outcome, str]:
    """What the source says below each outcome."""
    said = {}
    for member, text in pairwise(ast.walk(ast.parse(inspect.getsource(Outcome)))):
        match member, text:
            case ast.Assign(targets=[ast.Name(name)]), ast.Expr(ast.Constant(str(sentence))):
                said[Outcome[name]] = sentence
    return said


def _labels(family: Metric) -> str:
    names = dict.fromkeys(label for sample in family.samples for label in sample.labels if label != "le")
    return f" {{{', '.join(names)}}}"


def _moment() -> Moment:
    """A moment in which every family has a sample."""
    histogram = HistogramValues((1.0,), (1, 0), 1.0)
    values = ClassValues(dict.fromkeys(Outcome, 1), histogram, histogram, 1, 1, histogram, histogram, histogram)
    by_slot = {"tp1-0": 1}
    return Moment(
        state=RouterState("plan", (1, 1), (1, 1), True, "", by_slot, by_slot, by_slot, 0, 0),
        measured=Measurements({"chat": values}, (KeyCount("chat", 1, 1, 0),), ReuseValues(histogram, 1)),
        table_age_seconds=1.0,
        refusals={"Stale": 1},
        in_flight_mode=InFlightMode.TRAILERS,
        estimate_error=by_slot,
    )
