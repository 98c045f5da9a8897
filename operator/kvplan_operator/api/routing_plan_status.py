"""RoutingPlan.status: how the plan was found, what it promises, and how far it is. Pure data.

Costs are per second in thousandths of the cost of one wasted KV token (``…Milli``).
"""

from pydantic import Field

from kvplan_operator.api.base import ATOMIC, ApiModel, keyed_by
from kvplan_operator.api.common import Status
from kvplan_operator.api.scalars import (
    BigCount,
    ConfigurationName,
    CostMilli,
    Count,
    DnsLabel,
    Flag,
    GroupCount,
    LargeMilli,
    Milli,
    Milliseconds,
    PositiveMilli,
    Reason,
    RequestsPerSecondMilli,
    ShortText,
    Text,
    Timestamp,
    Tokens,
)


class CostParts(ApiModel):
    """The objective by cause."""

    total_milli: CostMilli = Field(description="All of it.")
    reservation_milli: CostMilli = Field(default=0, description="Worst-case preemption and waste.")
    gpu_milli: CostMilli = Field(default=0, description="GPU time, where it has a price.")
    latency_milli: CostMilli = Field(default=0, description="Mean latency above the targets.")
    rejection_milli: CostMilli = Field(default=0, description="Rejected requests.")


class BindingConstraint(ApiModel):
    """A constraint that keeps the cost from falling."""

    kind: Reason = Field(description="What binds, for example GpuBudget, Memory or Latency.")
    subject: ShortText = Field(description="The configuration, class or node it is about.")


class PartitionCount(ApiModel):
    """How many groups of one configuration."""

    configuration: ConfigurationName = Field(description="Name of the configuration.")
    replicas: GroupCount = Field(description="Groups of it.")


class RunnerUp(ApiModel):
    """The best other partition that was looked at."""

    total_milli: CostMilli = Field(description="Its cost.")
    groups: tuple[PartitionCount, ...] = Field(
        default=(), max_length=32, json_schema_extra=keyed_by("configuration"), description="Its groups."
    )  # fmt: skip


class Objective(ApiModel):
    """What the plan costs and how good that is known to be."""

    costs: CostParts = Field(description="The objective by cause.")
    lower_bound_milli: CostMilli | None = Field(
        default=None, description="Cost that no plan can go below. Absent: the method proves none."
    )
    gap_milli: Milli | None = Field(
        default=None, description="Distance to the bound, in thousandths of the cost, rounded up."
    )
    binding_constraints: tuple[BindingConstraint, ...] = Field(
        default=(), max_length=64, json_schema_extra=keyed_by("kind", "subject"),
        description="Constraints that keep the cost from falling.",
    )  # fmt: skip
    runner_up: RunnerUp | None = Field(
        default=None, description="The best other partition. Absent: no other was evaluated."
    )


class Rejected(ApiModel):
    """Demand that the plan rejects."""

    name: DnsLabel = Field(description="Name of the class.")
    share_milli: Milli = Field(description="Thousandths of its arrivals.")
    why: Text = Field(description="What is missing.")
    remedy: Text = Field(description="The nearest change that would serve it.")


class Solve(ApiModel):
    """How the plan was found."""

    status: Reason = Field(description="Optimal, Feasible, Infeasible or Error.")
    seed: BigCount = Field(default=0, description="Seed of the search.")
    solver_version: ShortText = Field(description="Version of kvplan's solver.")
    duration_milliseconds: Milliseconds = Field(default=0, description="Wall time.")
    deadline_hit: Flag = Field(
        default=False, description="Whether the wall clock ended the search; such a plan may not repeat."
    )
    fleet_uid: ShortText | None = Field(default=None, description="Identity of the fleet it was made for.")
    fleet_generation: BigCount | None = Field(default=None, description="Generation of the fleet's spec.")
    window_start: Timestamp | None = Field(default=None, description="Start of the measurements used.")
    window_end: Timestamp | None = Field(default=None, description="End of the measurements used.")


class ClassOutlook(ApiModel):
    """Load and service of one class."""

    name: DnsLabel = Field(description="Name of the class.")
    requests_per_second_milli: RequestsPerSecondMilli = Field(
        default=0, description="Arrival rate, in thousandths of a request per second."
    )
    mean_latency_milliseconds: Milliseconds = Field(default=0, description="Mean response time.")
    rejected_milli: Milli = Field(default=0, description="Thousandths of arrivals that are rejected.")
    overflow_milli: Milli = Field(default=0, description="Thousandths of requests that outgrow their reservation.")


class GroupOutlook(ApiModel):
    """Load of the groups of one configuration."""

    configuration: ConfigurationName = Field(description="Name of the configuration.")
    utilisation_milli: LargeMilli = Field(default=0, description="Busy share of maxSequences, in thousandths.")
    kv_use_milli: LargeMilli = Field(default=0, description="Held share of the KV cache, in thousandths.")
    wait_milliseconds: Milliseconds = Field(default=0, description="Mean wait for a free sequence.")


class Outlook(ApiModel):
    """Load and service, as forecast or as observed: the same fields, to be read side by side."""

    classes: tuple[ClassOutlook, ...] = Field(
        default=(), max_length=128, json_schema_extra=keyed_by("name"), description="By class."
    )  # fmt: skip
    groups: tuple[GroupOutlook, ...] = Field(
        default=(), max_length=32, json_schema_extra=keyed_by("configuration"),
        description="By configuration.",
    )  # fmt: skip


class RolloutProgress(ApiModel):
    """How far the plan is put in force."""

    step: Count = Field(default=0, description="Steps done.")
    steps: Count = Field(default=0, description="Steps in all.")
    waiting_for: Text = Field(default="", description="What the current step waits for.")
    started: Timestamp | None = Field(default=None, description="When the rollout began.")


class HotRoute(ApiModel):
    """The share of a class that goes to one configuration now."""

    configuration: ConfigurationName = Field(description="Name of the configuration.")
    share_milli: PositiveMilli = Field(description="Thousandths of the class's arrivals.")
    reservation_tokens: Tokens = Field(description="KV tokens one request takes there.")


class HotClass(ApiModel):
    """The values in force for one class; they may be re-tuned while the partition stays."""

    name: DnsLabel = Field(description="Name of the class.")
    reservation_tokens: Tokens = Field(description="KV tokens held per request.")
    reserved_prompt_tokens: Tokens | None = Field(
        default=None, description="Prompt that those have room for. Absent: not told."
    )
    admit_milli: Milli = Field(description="Thousandths of arrivals that are admitted.")
    routes: tuple[HotRoute, ...] = Field(
        default=(), max_length=32, json_schema_extra=keyed_by("configuration"),
        description="Where admitted requests go.",
    )  # fmt: skip
    prefix_cached_on: tuple[ConfigurationName, ...] = Field(
        default=(), max_length=32, json_schema_extra=ATOMIC,
        description="Configurations that keep the shared prefix.",
    )  # fmt: skip
    cached_prefix_tokens: Tokens | None = Field(
        default=None, description="Tokens of it that fill whole KV blocks. Absent: as the spec says."
    )


class RoutingPlanStatus(Status):
    """How a plan was found, what it promises, and how far it is."""

    objective: Objective | None = Field(default=None, description="What it costs. Absent: not evaluated yet.")
    rejected: tuple[Rejected, ...] = Field(
        default=(), max_length=128, json_schema_extra=keyed_by("name"), description="Demand it rejects."
    )  # fmt: skip
    solve: Solve | None = Field(default=None, description="How it was found. Absent: people wrote it.")
    rollout: RolloutProgress | None = Field(default=None, description="How far it is put in force. Absent: not begun.")
    hot_values: tuple[HotClass, ...] = Field(
        default=(), max_length=128, json_schema_extra=keyed_by("name"),
        description="Values in force now, by class; empty unless the plan is applied.",
    )  # fmt: skip
    forecast: Outlook | None = Field(default=None, description="What the plan promises.")
    observed: Outlook | None = Field(default=None, description="What was seen since. Absent: not applied.")
