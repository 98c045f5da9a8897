"""ServingFleet.spec, how a plan is put in force: routing, rollout, policy and the accepted plan.

Each default is stated here, once. Pure data.
"""

from pydantic import Field

from kvplan_operator.api.base import ATOMIC, SET, ApiModel
from kvplan_operator.api.common import LabelSelector
from kvplan_operator.api.fleet_enums import Admission, Affinity, PolicyMode, RoutingMode, Unmatched, Weekday
from kvplan_operator.api.scalars import (
    Digest,
    HeaderName,
    HistoryLimit,
    Milli,
    PositiveCount,
    PositiveSeconds,
    RequestsPerSecondMilli,
    Seconds,
    TimeOfDay,
    TimeZone,
    Url,
    WindowSeconds,
)


class Routers(ApiModel):
    """The router pods of the fleet."""

    selector: LabelSelector = Field(
        default=LabelSelector(match_labels={"app.kubernetes.io/name": "kvplan-router"}),
        description="Labels of the router pods.",
    )
    urls: tuple[Url, ...] = Field(
        default=(), max_length=32, json_schema_extra=SET,
        description="Addresses of routers that run outside the cluster.",
    )  # fmt: skip


class Churn(ApiModel):
    """How much balance a new table gives up so that keys stay where they are."""

    epsilon_milli: Milli = Field(
        default=50, description="Load above the balanced maximum that is tolerated, in thousandths."
    )


class Routing(ApiModel):
    """How requests find their group."""

    mode: RoutingMode = Field(
        default=RoutingMode.PLAN,
        description="Plan follows the accepted plan, Observe only measures, Off publishes nothing.",
    )
    routers: Routers = Field(default=Routers(), description="The router pods of the fleet.")
    unmatched: Unmatched = Field(
        default=Unmatched.COLD_TAIL, description="What happens to requests that match no class."
    )
    key_headers: tuple[HeaderName, ...] = Field(
        default=("x-gateway-inference-fairness-id", "x-tenant-id"),
        max_length=6, json_schema_extra=ATOMIC,
        description="Headers whose value identifies a reusable prefix; the first one present counts. Classes with "
        "key rules of their own do not look at them.",
    )  # fmt: skip
    table_interval_seconds: PositiveSeconds = Field(default=30, description="Time between two key tables.")
    q_cap_requests_per_second_milli: RequestsPerSecondMilli | None = Field(
        default=None,
        description="Rate of one key on one destination above which it gets a replica, in thousandths of a "
        "request per second. Absent: the knee of latency against rate, as measured.",
    )
    warm_slots_per_destination: PositiveCount | None = Field(
        default=None, description="Prefixes kept warm per destination. Absent: what the reservations leave."
    )
    admission: Admission = Field(
        default=Admission.SLOTS, description="Whether keys compete for warm slots or for bytes."
    )
    churn: Churn = Field(default=Churn(), description="How much balance is given up to avoid moving keys.")
    affinity: Affinity = Field(
        default=Affinity.AUTO,
        description="Whether hot keys get a fixed home: Auto decides from the measured gain.",
    )


class Window(ApiModel):
    """A weekly time in which cold changes may start."""

    days: tuple[Weekday, ...] = Field(
        default=(), max_length=7, json_schema_extra=SET,
        description="Days it opens on; empty means every day.",
    )  # fmt: skip
    start: TimeOfDay = Field(description="Opening time on those days, as HH:MM.")
    duration_seconds: WindowSeconds = Field(description="How long it stays open, up to a day.")
    time_zone: TimeZone = Field(default="Etc/UTC", description="Time zone of start, as in the tz database.")


class Rollout(ApiModel):
    """How a plan is put in force."""

    min_available_milli: Milli = Field(
        default=500, description="Share of each class's capacity that stays up, in thousandths."
    )
    drain_timeout_seconds: Seconds = Field(
        default=600, description="Time a draining group may take to finish its requests."
    )
    deadline_seconds: PositiveSeconds = Field(
        default=7_200, description="Time one step may take before the fleet is Stalled."
    )
    window: Window | None = Field(default=None, description="When cold changes may start. Absent: at any time.")


class PlanPolicy(ApiModel):
    """Who decides that a plan is applied."""

    mode: PolicyMode = Field(
        default=PolicyMode.DRY_RUN,
        description="DryRun only proposes, Approve applies the accepted plan, Auto what passes the gates.",
    )
    history_limit: HistoryLimit = Field(default=10, description="Superseded plans that are kept.")


class AcceptedPlan(ApiModel):
    """The plan that people or git accepted."""

    digest: Digest | None = Field(
        default=None, description="Digest of the RoutingPlan to apply. Absent: none is accepted."
    )
