"""Every query that one look at a fleet asks of Prometheus, as a pure function of the fleet and its classes.

Outputs: PromQL text by ``Ask``. Few and aggregated: one query per metric for all classes of a fleet, one for all sums
of the routers and one for all sums of the engines. Rates are over ``rate_window_seconds``, lengths and
speeds over the fleet's ``uncertainty.windowSeconds``. Which labels the series must carry is in docs/metrics.md. Pure.
"""

from collections.abc import Sequence
from enum import StrEnum

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.fleet_enums import Affinity, RoutingMode
from kvplan_operator.api.request_class import PrometheusLengths, RequestClass
from kvplan_operator.model.promql import increase, labelled_union, selector, sum_by

RATE_WINDOW_SECONDS = 600
"""Longest window of rates: at one request per second a Poisson rate is then known to ±4 %."""
STEP_SECONDS = 10
"""Resolution at which the age of young counters is told."""
BATCH_STEP_SECONDS = 60
"""Resolution at which the batch that ran is averaged."""
ROUTER = "kvplan_router"


class Ask(StrEnum):
    """What is asked; the key of query and answer."""

    ROUTER_SUMS = "router sums"
    COUNTED_SINCE = "counted since"
    ROUTERS_SEEN = "routers seen"
    INTERARRIVAL = "times between arrivals"
    PROMPT_TOKENS = "prompt lengths"
    OUTPUT_TOKENS = "output lengths"
    OUTPUT_TOKENS_BEFORE = "output lengths of the window before"
    LATENCY = "response times"
    KEY_REQUESTS = "requests by key"
    KEY_ERRORS = "errors of the counts by key"
    REUSE_GAPS = "reuse gaps"
    ENGINE_SUMS = "engine sums"
    ENGINE_CACHES = "engine caches"
    ENGINE_BATCHES = "engine batches"


class RouterPart(StrEnum):
    """The parts of ``Ask.ROUTER_SUMS``, by class; how many were summed is what the histograms count."""

    ARRIVALS = "arrivals"
    GAP_SECONDS = "gap_seconds"
    PROMPT_TOKENS = "prompt_tokens"
    LATENCY_SECONDS = "latency_seconds"


class EnginePart(StrEnum):
    """The parts of ``Ask.ENGINE_SUMS``, by pod."""

    FINISHED = "finished"
    PREFILL_SECONDS = "prefill_seconds"
    PREFILLS = "prefills"
    PREFILL_TOKENS = "prefill_tokens"
    TOKEN_SECONDS = "token_seconds"  # noqa: S105 - a duration
    TOKEN_GAPS = "token_gaps"  # noqa: S105 - a count
    FIRST_TOKEN_SECONDS = "first_token_seconds"  # noqa: S105 - a duration
    FIRST_TOKENS = "first_tokens"


def lengths_key(class_name: str) -> str:
    """Key of the query that a class's ``outputLengths.prometheus`` asks for."""
    return f"output lengths of class {class_name}"


def fleet_label(fleet: ServingFleet) -> str:
    """How router metrics name the fleet: ``namespace/name``."""
    return f"{fleet.metadata.namespace}/{fleet.metadata.name}"


def rate_window_seconds(fleet: ServingFleet) -> int:
    """Window of the fleet's rates: no sample older than ``uncertainty.windowSeconds`` counts for them either."""
    return min(RATE_WINDOW_SECONDS, fleet.spec.uncertainty.window_seconds)


def fleet_queries(fleet: ServingFleet, classes: Sequence[RequestClass], engines: Sequence[str] = ()) -> dict[str, str]:
    """PromQL by ``Ask``, and by ``lengths_key`` for classes that name a histogram of their own.

    Args:
        fleet: the fleet.
        classes: its classes.
        engines: how the names of its engines' pods begin; without one nothing is asked about engines.

    Raises:
        InvalidInput: a name or label value that no query can carry.
    """
    return {
        **_router_queries(fleet),
        **_table_queries(fleet),
        **_engine_queries(fleet, engines),
        **{lengths_key(c.metadata.name): _own_lengths(fleet, c, own) for c in classes if (own := own_histogram(c))},
    }


def own_histogram(request_class: RequestClass) -> PrometheusLengths | None:
    """The histogram that a class names and that is not the router's own."""
    given = request_class.spec.output_lengths.prometheus
    return None if given is None or given == PrometheusLengths() else given


def _router_queries(fleet: ServingFleet) -> dict[str, str]:
    labels, window = {"fleet": fleet_label(fleet)}, fleet.spec.uncertainty.window_seconds
    recent = rate_window_seconds(fleet)
    arrivals = selector(f"{ROUTER}_requests_total", labels)
    by_class = f"max by (class) (timestamp({arrivals}))"
    queries: dict[str, str] = {
        Ask.ROUTER_SUMS: _router_sums(labels, window, recent),
        Ask.COUNTED_SINCE: f"min_over_time({by_class}[{recent}s:{STEP_SECONDS}s])",
        Ask.ROUTERS_SEEN: f"max by (pod) (timestamp({arrivals}))",
        Ask.INTERARRIVAL: _buckets(f"{ROUTER}_interarrival_seconds", labels, recent),
        Ask.PROMPT_TOKENS: _buckets(f"{ROUTER}_prompt_tokens", labels, window),
        Ask.OUTPUT_TOKENS: _buckets(f"{ROUTER}_output_tokens", labels, window),
        Ask.LATENCY: _buckets(f"{ROUTER}_latency_seconds", labels, window),
    }
    if fleet.spec.uncertainty.radius.auto:
        before = f"{selector(f'{ROUTER}_output_tokens_bucket', labels)}[{window}s] offset {window}s"
        queries[Ask.OUTPUT_TOKENS_BEFORE] = sum_by(("class", "le"), f"increase({before})")
    return queries


def _router_sums(labels: dict[str, str], window: int, recent: int) -> str:
    def part(metric: str, over: int) -> str:
        return sum_by(("class",), increase(selector(f"{ROUTER}_{metric}", labels), over))

    return labelled_union(
        {
            RouterPart.ARRIVALS: part("requests_total", recent),
            RouterPart.GAP_SECONDS: part("interarrival_seconds_sum", recent),
            RouterPart.PROMPT_TOKENS: part("prompt_tokens_sum", window),
            RouterPart.LATENCY_SECONDS: part("latency_seconds_sum", window),
        }
    )


def _table_queries(fleet: ServingFleet) -> dict[str, str]:
    """What the key table is planned from; not asked where none is made."""
    if fleet.spec.routing.mode is RoutingMode.OFF or fleet.spec.routing.affinity is Affinity.OFF:
        return {}
    labels = {"fleet": fleet_label(fleet)}
    requests = increase(selector(f"{ROUTER}_key_requests_total", labels), rate_window_seconds(fleet))
    gaps = increase(selector(f"{ROUTER}_reuse_gap_seconds_bucket", labels), fleet.spec.uncertainty.window_seconds)
    return {
        Ask.KEY_REQUESTS: sum_by(("class", "key"), requests),
        Ask.KEY_ERRORS: sum_by(("class", "key"), selector(f"{ROUTER}_key_error", labels)),
        Ask.REUSE_GAPS: sum_by(("le",), gaps),
    }


def _engine_queries(fleet: ServingFleet, engines: Sequence[str]) -> dict[str, str]:
    """Per pod: which pods are the fleet's is known from the watches, not from labels."""
    if not engines:
        return {}
    labels, window = {"namespace": fleet.metadata.namespace}, fleet.spec.uncertainty.window_seconds
    pods = {"pod": engines}

    def part(metric: str, over: int = window) -> str:
        return sum_by(("pod",), increase(selector(f"vllm:{metric}", labels, beginning=pods), over))

    served = selector("vllm:request_success_total", labels, unlike={"finished_reason": "abort"}, beginning=pods)
    sums: dict[str, str] = {
        EnginePart.FINISHED: sum_by(("pod",), increase(served, rate_window_seconds(fleet))),
        EnginePart.PREFILL_SECONDS: part("request_prefill_time_seconds_sum"),
        EnginePart.PREFILLS: part("request_prefill_time_seconds_count"),
        EnginePart.PREFILL_TOKENS: part("request_prefill_kv_computed_tokens_sum"),
        EnginePart.TOKEN_SECONDS: part("inter_token_latency_seconds_sum"),
        EnginePart.TOKEN_GAPS: part("inter_token_latency_seconds_count"),
        EnginePart.FIRST_TOKEN_SECONDS: part("time_to_first_token_seconds_sum"),
        EnginePart.FIRST_TOKENS: part("time_to_first_token_seconds_count"),
    }
    caches = (
        f"max by (pod,engine,num_gpu_blocks,block_size) ({selector('vllm:cache_config_info', labels, beginning=pods)})"
    )
    running = sum_by(("pod",), selector("vllm:num_requests_running", labels, beginning=pods))
    busy = f"avg_over_time(({running} > 0)[{window}s:{BATCH_STEP_SECONDS}s])"
    return {Ask.ENGINE_SUMS: labelled_union(sums), Ask.ENGINE_CACHES: caches, Ask.ENGINE_BATCHES: busy}


def _buckets(histogram: str, labels: dict[str, str], window: int) -> str:
    return sum_by(("class", "le"), increase(selector(f"{histogram}_bucket", labels), window))


def _own_lengths(fleet: ServingFleet, request_class: RequestClass, given: PrometheusLengths) -> str:
    """A histogram that a class names; the namespace is added, so that nobody reads another tenant's series."""
    labels = given.match_labels or {"fleet": fleet_label(fleet), "class": request_class.metadata.name}
    buckets = selector(f"{given.metric}_bucket", {**labels, "namespace": fleet.metadata.namespace})
    return sum_by(("le",), increase(buckets, fleet.spec.uncertainty.window_seconds))
