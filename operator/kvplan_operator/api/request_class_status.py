"""RequestClass.status: what was measured and what is in force. Pure data."""

from enum import StrEnum

from pydantic import Field

from kvplan_operator.api.base import ApiModel, keyed_by
from kvplan_operator.api.common import Quantile, Status
from kvplan_operator.api.scalars import (
    BigCount,
    DnsLabel,
    Microseconds,
    Milli,
    Milliseconds,
    RadiusTokens,
    RequestsPerSecondMilli,
    Tokens,
)


class Freshness(StrEnum):
    """How far measurements can be trusted."""

    FRESH = "Fresh"
    PARTIAL = "Partial"
    STALE = "Stale"
    NO_DATA = "NoData"


class ObservedLatency(ApiModel):
    """Latency as measured at the router and the engines; the target bounds the mean only."""

    mean_milliseconds: Milliseconds | None = Field(default=None, description="Mean response time.")
    p50_milliseconds: Milliseconds | None = Field(default=None, description="Median response time.")
    p99_milliseconds: Milliseconds | None = Field(
        default=None, description="Response time that 99 of 100 requests stay within."
    )
    first_token_milliseconds: Milliseconds | None = Field(default=None, description="Mean time to the first token.")
    decode_microseconds_per_token: Microseconds | None = Field(
        default=None, description="Mean time per output token after the first."
    )


class RequestClassStatus(Status):
    """What was observed about a class."""

    fleet: DnsLabel | None = Field(default=None, description="Fleet it belongs to. Absent: no fleet selects it.")
    requests_per_second_milli: RequestsPerSecondMilli | None = Field(
        default=None, description="Arrival rate, in thousandths of a request per second."
    )
    samples: BigCount | None = Field(default=None, description="Requests behind the length distribution.")
    freshness: Freshness | None = Field(default=None, description="How far the measurements can be trusted.")
    mean_output_tokens: Tokens | None = Field(default=None, description="Mean output length.")
    fractile_milli: Milli | None = Field(
        default=None, description="Share of requests that the reservation is meant to hold, in thousandths."
    )
    radius_tokens: RadiusTokens | None = Field(
        default=None, description="Drift of lengths that the reservation withstands."
    )
    shift_threshold_tokens: Tokens | None = Field(
        default=None, description="Radius above which the robust reservation starts to move."
    )
    reservation_tokens: Tokens | None = Field(
        default=None, description="KV tokens held per request, prompt included, in force now."
    )
    quantiles: tuple[Quantile, ...] = Field(
        default=(), max_length=16, json_schema_extra=keyed_by("probabilityMilli"),
        description="Output lengths as 16 quantiles.",
    )  # fmt: skip
    observed: ObservedLatency | None = Field(
        default=None, description="Latency as measured, beside the target. Absent: not measured yet."
    )
