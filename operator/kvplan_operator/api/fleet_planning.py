"""ServingFleet.spec, how it is planned: classes, objective, uncertainty, solver, replanning, measurements.

Each default is stated here, once. Symbols: ρ = preemptionCostRatio, c_slo = latencyWeight, c_rej =
rejectionWeight, c_gpu = gpuSecondWeight, κ = headroomMilli and ε = radius of the BCD-DRO paper, with
c_w = 1. Pure data.
"""

from typing import ClassVar

from pydantic import Field

from kvplan_operator.api.base import ApiModel, Rule
from kvplan_operator.api.common import LabelSelector
from kvplan_operator.api.fleet_enums import Ambiguity, Method
from kvplan_operator.api.scalars import (
    Count,
    DnsLabel,
    Flag,
    LargeMilli,
    Milli,
    PositiveRatio,
    PositiveSeconds,
    RadiusTokens,
    RatioMilli,
    Seconds,
    TimeLimitSeconds,
    Url,
    Weight,
)


class Classes(ApiModel):
    """Which RequestClasses belong to the fleet."""

    selector: LabelSelector | None = Field(
        default=None,
        description="Labels of its RequestClasses. Absent: the label kvplan.dev/fleet with the fleet's name.",
    )


class Objective(ApiModel):
    """What the plan trades off. The unit of cost is one reserved KV token that a request did not use."""

    preemption_cost_ratio: PositiveRatio = Field(
        default=10, description="Cost of one token beyond the reservation; sets the fractile ratio/(ratio+1)."
    )
    latency_weight: Weight = Field(
        default=5, description="Cost of one second of mean latency above the class's target, per request."
    )
    rejection_weight: Weight = Field(default=5_000, description="Cost of one rejected request.")
    gpu_second_weight: Weight = Field(default=0, description="Cost of one GPU-second spent on a request.")
    idle_gpu_second_weight: Weight = Field(
        default=0, description="Cost per second of each GPU that a group holds, busy or not."
    )
    switching_weight: Weight = Field(
        default=0, description="Cost per second of each group that differs from what runs."
    )
    headroom_milli: LargeMilli = Field(
        default=200, description="KV memory kept free above the expected reservations, in thousandths."
    )


class Radius(ApiModel):
    """How far output lengths may drift from what was measured."""

    rules: ClassVar = (
        Rule(
            "[has(self.relativeMilli), has(self.tokens), has(self.auto) && self.auto].filter(given, given).size() == 1",
            "give exactly one of relativeMilli, tokens and auto: true",
            holds=lambda self: (
                [self.relative_milli is not None, self.tokens is not None, self.auto is True].count(True) == 1
            ),
        ),
    )

    relative_milli: RatioMilli | None = Field(
        default=None, description="Radius as thousandths of the class's mean output length."
    )
    tokens: RadiusTokens | None = Field(default=None, description="Radius in tokens.")
    auto: Flag | None = Field(
        default=None, description="True estimates the radius from sampling noise and recent drift per class."
    )


class Uncertainty(ApiModel):
    """Which output-length distributions a plan must withstand."""

    rules: ClassVar = (
        Rule(
            "!has(self.ambiguity) || self.ambiguity != 'Scale' || !has(self.radius) || !has(self.radius.tokens)",
            "with ambiguity Scale give radius.relativeMilli or radius.auto",
            "radius",
            lambda self: self.ambiguity != Ambiguity.SCALE or self.radius.tokens is None,
        ),
    )

    ambiguity: Ambiguity = Field(
        default=Ambiguity.WASSERSTEIN_1,
        description="Wasserstein1 bounds the mean shift, WassersteinInf each sample's, Scale a factor.",
    )
    radius: Radius = Field(
        default=Radius(relative_milli=150),
        description="How far lengths may drift; 150 thousandths by default.",
    )
    window_seconds: PositiveSeconds = Field(
        default=3_600, description="Age of the oldest sample that counts, in seconds."
    )


class Solver(ApiModel):
    """How plans are computed."""

    method: Method = Field(
        default=Method.CERTIFIED,
        description="Certified proves a bound; Literal is the published algorithm, for comparison.",
    )
    time_limit_seconds: TimeLimitSeconds = Field(
        default=10, description="Wall-clock safety stop; the best plan so far is kept."
    )
    gap_target_milli: Milli = Field(
        default=5, description="Proven gap at which the search stops, in thousandths of the cost."
    )


class Replan(ApiModel):
    """When a new plan is worth a change."""

    interval_seconds: PositiveSeconds = Field(default=300, description="Time between two solves.")
    min_dwell_seconds: Seconds = Field(default=3_600, description="Time a partition stays before another replaces it.")
    min_improvement_milli: Milli = Field(
        default=50, description="Saving that a new partition must promise, in thousandths of the cost."
    )
    max_restarts_per_hour: Count = Field(
        default=8, description="Groups that kvplan may restart in any hour; 0 allows none."
    )


class Prometheus(ApiModel):
    """Where measurements come from. Credentials live in the operator's settings, never here."""

    rules: ClassVar = (
        Rule(
            "has(self.profile) != has(self.url)",
            "give either profile or url",
            holds=lambda self: (self.profile is None) != (self.url is None),
        ),
    )

    profile: DnsLabel | None = Field(default=None, description="Name of a connection in the operator's settings.")
    url: Url | None = Field(
        default=None,
        description="Address queried without credentials; the operator's allow-list must have it.",
    )
