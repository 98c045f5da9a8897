"""ServingFleet.status: what was observed, written only when its rendering changes. Pure data."""

from pydantic import Field

from kvplan_operator.api.base import ApiModel, keyed_by
from kvplan_operator.api.common import Status
from kvplan_operator.api.scalars import (
    BigCount,
    ConfigurationName,
    Count,
    Digest,
    Milli,
    Milliseconds,
    ObjectName,
    Reason,
    SignedMilli,
)


class PlanReference(ApiModel):
    """A RoutingPlan in the fleet's namespace."""

    name: ObjectName = Field(description="Name of the RoutingPlan.")
    digest: Digest = Field(description="Digest of its spec.")


class CandidatePlan(PlanReference):
    """The plan that waits for a decision."""

    improvement_milli: SignedMilli | None = Field(
        default=None,
        description="Saving over the plan in force, in thousandths of the cost. Absent: no plan is in force.",
    )


class GroupStatus(ApiModel):
    """The groups of one configuration."""

    configuration: ConfigurationName = Field(description="Name of the configuration.")
    planned: Count = Field(default=0, description="Groups that the plan in force wants.")
    running: Count = Field(default=0, description="Groups that exist.")
    ready: Count = Field(default=0, description="Groups that serve.")
    draining: Count = Field(default=0, description="Groups that finish their last requests.")


class ExcludedGpus(ApiModel):
    """GPUs of a selected node that the fleet cannot use."""

    node: ObjectName = Field(description="Name of the node.")
    reason: Reason = Field(description="Why, for example ForeignPods, Cordoned or NotReady.")
    gpus: Count = Field(default=0, description="How many.")


class GpuInventory(ApiModel):
    """The GPUs of the selected nodes."""

    allocatable: Count = Field(default=0, description="GPUs that the nodes offer.")
    used: Count = Field(default=0, description="GPUs that the fleet's groups hold.")
    excluded: tuple[ExcludedGpus, ...] = Field(
        default=(), max_length=512, json_schema_extra=keyed_by("node", "reason"),
        description="GPUs the fleet cannot use, with the reason.",
    )  # fmt: skip


class LastSolve(ApiModel):
    """The latest run of the solver."""

    duration_milliseconds: Milliseconds = Field(default=0, description="Wall time.")
    gap_milli: Milli = Field(default=1_000, description="Proven gap, in thousandths of the cost, rounded up.")
    status: Reason = Field(description="What the result is worth: Optimal, Feasible, Infeasible or Error.")


class TableStatus(ApiModel):
    """The routing table that was published last."""

    generation: BigCount = Field(default=0, description="Counts published tables.")
    keys: BigCount = Field(default=0, description="Keys with a fixed home.")
    digest: Digest | None = Field(default=None, description="SHA-256 of the table. Absent: none is published.")


class ServingFleetStatus(Status):
    """What was observed about a fleet."""

    current_plan: PlanReference | None = Field(default=None, description="The plan in force. Absent: none was applied.")
    candidate_plan: CandidatePlan | None = Field(
        default=None, description="The plan that waits for a decision. Absent: none does."
    )
    groups: tuple[GroupStatus, ...] = Field(
        default=(), max_length=32, json_schema_extra=keyed_by("configuration"),
        description="Groups per configuration.",
    )  # fmt: skip
    gpus: GpuInventory | None = Field(
        default=None, description="GPUs of the selected nodes. Absent: not looked at yet."
    )
    last_solve: LastSolve | None = Field(default=None, description="The latest run of the solver. Absent: none yet.")
    table: TableStatus | None = Field(default=None, description="The routing table published last. Absent: none.")
