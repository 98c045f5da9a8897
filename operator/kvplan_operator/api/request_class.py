"""RequestClass: requests of one kind, what they are promised, and what is known of their lengths and rate.

What is absent is measured. ``slo.latencyMilliseconds`` bounds the mean response time, as equation (6f) of
the BCD-DRO paper does; percentiles stand beside it in status. Pure data.
"""

from typing import ClassVar, Literal

from pydantic import Field

from kvplan_operator.api.base import SET, ApiModel, Rule, keyed_by
from kvplan_operator.api.common import ObjectMeta, Quantile, ascending, label_keys
from kvplan_operator.api.labels import API_VERSION
from kvplan_operator.api.request_class_routing import Keys, Queue, Shed
from kvplan_operator.api.request_class_status import RequestClassStatus
from kvplan_operator.api.scalars import (
    SERIES_LABEL_PATTERN,
    ConfigMapKey,
    DnsLabel,
    HeaderName,
    LabelValue,
    LargeMilli,
    MetricName,
    ModelName,
    ObjectName,
    PositiveMilliseconds,
    PositiveRatio,
    PositiveTokens,
    Priority,
    RequestsPerSecondMilli,
    ShortText,
    Tokens,
    Weight,
)


class HeaderMatch(ApiModel):
    """A condition on one request header."""

    rules: ClassVar = (
        Rule(
            "has(self.exact) != has(self.prefix)",
            "give either exact or prefix",
            holds=lambda self: (self.exact is None) != (self.prefix is None),
        ),
    )

    name: HeaderName = Field(description="Header name in lower case.")
    exact: ShortText | None = Field(default=None, description="The header must have exactly this value.")
    prefix: ShortText | None = Field(default=None, description="The header's value must begin with this.")


class Match(ApiModel):
    """Which requests belong to the class: all headers match and, if any are listed, one of the models."""

    headers: tuple[HeaderMatch, ...] = Field(
        default=(), max_length=16, json_schema_extra=keyed_by("name"),
        description="Headers that must all match; empty matches every request.",
    )  # fmt: skip
    models: tuple[ModelName, ...] = Field(
        default=(), max_length=16, json_schema_extra=SET,
        description="Model names or aliases, any of which must be asked for; empty matches every model.",
    )  # fmt: skip


class Slo(ApiModel):
    """What requests of the class are promised."""

    latency_milliseconds: PositiveMilliseconds = Field(
        description="Bound on the mean response time, from arrival to last token; percentiles are in status."
    )


class TokenCounts(ApiModel):
    """Lengths of prompts, and the cap on outputs."""

    rules: ClassVar = (
        Rule(
            "!has(self.sharedPrefix) || !has(self.input) || self.sharedPrefix <= self.input",
            "a shared prefix is part of every prompt: use a sharedPrefix of at most input",
            "sharedPrefix",
            lambda self: _at_most(self.shared_prefix, self.input),
        ),
        Rule(
            "!has(self.inputP95) || !has(self.inputMax) || self.inputP95 <= self.inputMax",
            "use an inputP95 of at most inputMax",
            "inputP95",
            lambda self: _at_most(self.input_p95, self.input_max),
        ),
        Rule(
            "!has(self.input) || !has(self.inputMax) || self.input <= self.inputMax",
            "use an input of at most inputMax",
            "input",
            lambda self: _at_most(self.input, self.input_max),
        ),
    )

    input: Tokens | None = Field(default=None, description="Mean prompt length. Absent: measured.")
    input_p95: Tokens | None = Field(
        default=None,
        description="Prompt length that 95 of 100 requests stay within. Absent: measured, else input.",
    )
    input_max: Tokens | None = Field(default=None, description="Longest prompt. Absent: measured, else inputP95.")
    shared_prefix: Tokens | None = Field(
        default=None, description="Leading tokens that all prompts share. Absent: from a trace, else 0."
    )
    max_output: PositiveTokens = Field(description="Longest output the class may ask for.")


class Arrivals(ApiModel):
    """How often requests arrive."""

    requests_per_second_milli: RequestsPerSecondMilli | None = Field(
        default=None, description="Arrival rate in thousandths of a request per second. Absent: measured."
    )
    interarrival_scv_milli: LargeMilli | None = Field(
        default=None,
        description="Squared coefficient of variation of the times between arrivals, in thousandths; "
        "1000 is Poisson. Absent: measured, else 1000.",
    )


class PrometheusLengths(ApiModel):
    """A histogram of output lengths in the fleet's Prometheus."""

    rules: ClassVar = (label_keys(SERIES_LABEL_PATTERN, "use label names such as model_name"),)

    metric: MetricName = Field(
        default="kvplan_router_output_tokens", description="Histogram of output tokens per request."
    )
    match_labels: dict[str, LabelValue] = Field(
        default={}, max_length=16,
        description="Labels the series must have. Empty: fleet and class as the router writes them.",
    )  # fmt: skip


class ConfigMapKeyRef(ApiModel):
    """One key of a ConfigMap in the same namespace."""

    name: ObjectName = Field(description="Name of the ConfigMap.")
    key: ConfigMapKey = Field(description="Key whose value holds one sample or one quantile per line.")


class OutputLengths(ApiModel):
    """Where the distribution of output lengths comes from."""

    rules: ClassVar = (
        Rule(
            "[has(self.prometheus), has(self.configMapRef), has(self.quantiles)].filter(x, x).size() <= 1",
            "give at most one of prometheus, configMapRef and quantiles",
            holds=lambda self: [self.prometheus, self.config_map_ref, self.quantiles].count(None) >= 2,
        ),
        Rule(
            "!has(self.quantiles) || self.quantiles.all(a, self.quantiles.all(b, "
            "a.probabilityMilli > b.probabilityMilli || a.tokens <= b.tokens))",
            "lengths must not fall while probabilities rise",
            "quantiles",
            lambda self: self.quantiles is None or ascending(self.quantiles),
        ),
    )

    prometheus: PrometheusLengths | None = Field(
        default=None,
        description="A histogram in Prometheus. Absent: the router's own, if nothing else is given.",
    )
    config_map_ref: ConfigMapKeyRef | None = Field(default=None, description="Samples in a ConfigMap.")
    quantiles: tuple[Quantile, ...] | None = Field(
        default=None, min_length=1, max_length=64, json_schema_extra=keyed_by("probabilityMilli"),
        description="The distribution as quantiles, straight lines between them.",
    )  # fmt: skip


class Costs(ApiModel):
    """What differs from the fleet's objective for this class."""

    preemption_ratio: PositiveRatio | None = Field(
        default=None, description="Cost of one token beyond the reservation. Absent: the fleet's."
    )
    latency_weight: Weight | None = Field(
        default=None, description="Cost of one second of mean latency above target. Absent: the fleet's."
    )
    rejection_weight: Weight | None = Field(
        default=None, description="Cost of one rejected request. Absent: the fleet's."
    )


class RequestClassSpec(ApiModel):
    """Which requests, what they are promised, and what is known of them."""

    rules: ClassVar = (
        Rule(
            "!has(self.outputLengths.quantiles) || "
            "self.outputLengths.quantiles.all(q, q.tokens <= self.tokens.maxOutput)",
            "use quantiles of at most tokens.maxOutput",
            "outputLengths",
            lambda self: all(q.tokens <= self.tokens.max_output for q in self.output_lengths.quantiles or ()),
        ),
    )

    match: Match = Field(default=Match(), description="Which requests belong to the class.")
    priority: Priority = Field(
        default=0, description="Classes are tried from the highest priority down, equal ones by name."
    )
    slo: Slo = Field(description="What requests of the class are promised.")
    tokens: TokenCounts = Field(description="Lengths of prompts, and the cap on outputs.")
    arrivals: Arrivals = Field(default=Arrivals(), description="How often requests arrive.")
    output_lengths: OutputLengths = Field(
        default=OutputLengths(), description="Where the distribution of output lengths comes from."
    )
    costs: Costs = Field(default=Costs(), description="What differs from the fleet's objective.")
    tenant: DnsLabel | None = Field(
        default=None, description="Owner for fairness reports and caps. Absent: shared by all."
    )
    keys: Keys | None = Field(
        default=None,
        description="How the key of a request is found. Absent: the fleet's routing.keyHeaders, then the JSON fields "
        "prompt_cache_key and user.",
    )
    queue: Queue = Field(default=Queue(), description="How requests wait while no group has room.")
    shed: Shed = Field(
        default=Shed.TOO_MANY_REQUESTS,
        description="What happens to a request that the plan does not admit, or whose key's home has no room.",
    )


class RequestClass(ApiModel):
    """Requests of one kind: chat, code, summaries. Belongs to the fleet whose classes.selector matches it."""

    rules: ClassVar = (
        Rule(
            "self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')",
            "use a name of at most 63 characters without dots: it is a label value and part of plans",
            "metadata.name",
            lambda self: len(self.metadata.name) <= 63 and "." not in self.metadata.name,
        ),
    )

    api_version: Literal["kvplan.dev/v1alpha1"] = API_VERSION
    kind: Literal["RequestClass"] = "RequestClass"
    metadata: ObjectMeta
    spec: RequestClassSpec = Field(description="What is wanted.")
    status: RequestClassStatus = Field(default=RequestClassStatus(), description="What was observed.")


def _at_most(low: int | None, high: int | None) -> bool:
    return low is None or high is None or low <= high
