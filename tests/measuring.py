"""Builders of what Prometheus replies about the fleet ``demo``, each argument spelled only where a test cares."""

from collections.abc import Mapping, Sequence
from typing import Any

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.model.fleet_queries import RATE_WINDOW_SECONDS, Ask, EnginePart, RouterPart
from kvplan_operator.model.measurement import Looked, measured_from
from kvplan_operator.model.replies import Replies
from kvplan_operator.model.series import Answer, Reply, Series
from kvplan_operator.model.snapshot import ClusterView, Measured, Snapshot
from tests.planning import fleet, own_pod, request_class

NOW = 1_000_000.0
Object = dict[str, Any]


def answer(*rows: tuple[Mapping[str, str], float], warnings: Sequence[str] = ()) -> Answer:
    """An answer evaluated now."""
    return Answer(tuple(Series(labels, value, NOW) for labels, value in rows), tuple(warnings))


def buckets(cumulative: Mapping[str, float], **labels: str) -> Answer:
    """The buckets of one histogram."""
    return answer(*(({**labels, "le": edge}, count) for edge, count in cumulative.items()))


def sums(parts: Mapping[str, float], **labels: str) -> Answer:
    """Parts of a union."""
    return answer(*(({**labels, "part": part}, value) for part, value in parts.items()))


LENGTHS = {"128": 0.0, "256": 600.0, "512": 1200.0, "+Inf": 1200.0}
GAPS = {"0.25": 600.0, "0.5": 900.0, "1": 1100.0, "2": 1200.0, "+Inf": 1200.0}
ROUTER: dict[str, float] = {
    RouterPart.ARRIVALS: 1200.0,
    RouterPart.GAP_SECONDS: 600.0,
    RouterPart.PROMPT_TOKENS: 600_000.0,
    RouterPart.LATENCY_SECONDS: 2400.0,
}
ENGINE: dict[str, float] = {
    EnginePart.FINISHED: 1200.0,
    EnginePart.PREFILL_SECONDS: 60.0,
    EnginePart.PREFILLS: 1200.0,
    EnginePart.PREFILL_TOKENS: 600_000.0,
    EnginePart.TOKEN_SECONDS: 6_000.0,
    EnginePart.TOKEN_GAPS: 300_000.0,
    EnginePart.FIRST_TOKEN_SECONDS: 120.0,
    EnginePart.FIRST_TOKENS: 1200.0,
}


def good(**changes: Reply) -> dict[str, Reply]:
    """Replies for one class ``chat`` at two requests per second, one router and one engine; by name of ``Ask``."""
    plain: dict[str, Reply] = {
        Ask.ROUTER_SUMS: sums(ROUTER, **{"class": "chat"}),
        Ask.COUNTED_SINCE: answer(({"class": "chat"}, NOW - RATE_WINDOW_SECONDS)),
        Ask.ROUTERS_SEEN: answer(({"pod": "router-0"}, NOW - 5)),
        Ask.INTERARRIVAL: buckets(GAPS, **{"class": "chat"}),
        Ask.PROMPT_TOKENS: buckets({"256": 0, "512": 600, "1024": 1200, "+Inf": 1200}, **{"class": "chat"}),
        Ask.OUTPUT_TOKENS: buckets(LENGTHS, **{"class": "chat"}),
        Ask.LATENCY: buckets({"1": 0, "2": 600, "4": 1200, "+Inf": 1200}, **{"class": "chat"}),
        Ask.KEY_REQUESTS: answer(({"class": "chat", "key": "00000000000000ff"}, 600)),
        Ask.KEY_ERRORS: answer(({"class": "chat", "key": "00000000000000ff"}, 6)),
        Ask.REUSE_GAPS: buckets({"1": 10, "10": 30, "+Inf": 40}),
        Ask.ENGINE_SUMS: sums(ENGINE, pod="engine-0"),
        Ask.ENGINE_BATCHES: answer(({"pod": "engine-0"}, 4.0)),
        Ask.ENGINE_CACHES: answer(({"pod": "engine-0", "engine": "0", "num_gpu_blocks": "33", "block_size": "16"}, 1)),
    }
    return plain | {Ask[name]: reply for name, reply in changes.items()}


def measured_class_of(name: str = "chat", **spec: Any) -> RequestClass:
    """A class of which everything has to be measured."""
    return request_class(name, **({"tokens": {"maxOutput": 512}, "arrivals": {}, "outputLengths": {}} | spec))


def router_pod(name: str = "router-0", since: str = "1970-01-01T00:00:00Z", **changes: Any) -> Object:
    """A Ready router."""
    metadata = {"name": name, "namespace": "default", "labels": {"app.kubernetes.io/name": "kvplan-router"}}
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
    return {"metadata": metadata, "spec": {}, "status": {"phase": "Running", "conditions": conditions, **changes}}


def look(
    replies: Mapping[str, Reply] | None = None,
    *,
    of: ServingFleet | None = None,
    classes: Sequence[RequestClass] | None = None,
    pods: Sequence[Object] | None = None,
    before: Measured | None = None,
    at: float = NOW,
) -> Measured:
    """What comes of some replies."""
    given = good() if replies is None else replies
    return measured_from(
        Looked(
            fleet=of or fleet(),
            classes=tuple(classes if classes is not None else [measured_class_of()]),
            pods=tuple(pods if pods is not None else [own_pod("engine-0", gpus=1), router_pod()]),
            replies=Replies(given, "prometheus test", at),
            before=before or Measured(),
        )
    )


def snapshot(measured: Measured | None = None, **parts: Any) -> Snapshot:
    """A snapshot of the fleet ``demo`` and its class ``chat``."""
    plain: Object = {
        "now": NOW,
        "fleet": fleet(),
        "resource_version": "1",
        "classes": (measured_class_of(),),
        "plans": (),
        "cluster": ClusterView(),
        "measured": measured or look(),
    }
    return Snapshot(**(plain | parts))
