"""ServingFleet: one model served on the GPUs of some nodes, and how kvplan may plan and change it.

Only ``model``, ``nodes`` and ``configurations`` are required; every other field has a default, stated here
once and copied into the schema. The parts of the spec are in ``fleet_engine``, ``fleet_planning`` and
``fleet_operation``, the status in ``fleet_status``. Pure data.
"""

from typing import ClassVar, Literal

from pydantic import Field

from kvplan_operator.api import fleet_engine, fleet_operation, fleet_planning
from kvplan_operator.api.base import ApiModel, Rule, keyed_by
from kvplan_operator.api.common import ObjectMeta
from kvplan_operator.api.fleet_status import ServingFleetStatus
from kvplan_operator.api.labels import API_VERSION
from kvplan_operator.api.scalars import Flag


class ServingFleetSpec(ApiModel):
    """What is served, where it may run, and within which policy."""

    model: fleet_engine.Model = Field(description="The model that all groups of the fleet serve.")
    nodes: fleet_engine.Nodes = Field(description="The nodes whose GPUs the fleet may use.")
    configurations: tuple[fleet_engine.Configuration, ...] = Field(
        min_length=1, max_length=32, json_schema_extra=keyed_by("name"),
        description="Candidate configurations; the plan chooses how many groups of each to run.",
    )  # fmt: skip
    engine: fleet_engine.Engine = Field(
        default=fleet_engine.Engine(),
        description="How engines are started when kvplan creates or patches them.",
    )
    classes: fleet_planning.Classes = Field(
        default=fleet_planning.Classes(), description="Which RequestClasses belong to this fleet."
    )
    objective: fleet_planning.Objective = Field(
        default=fleet_planning.Objective(), description="What the plan trades off; costs in wasted KV tokens."
    )
    uncertainty: fleet_planning.Uncertainty = Field(
        default=fleet_planning.Uncertainty(),
        description="Which output-length distributions a plan must withstand.",
    )
    solver: fleet_planning.Solver = Field(default=fleet_planning.Solver(), description="How plans are computed.")
    replan: fleet_planning.Replan = Field(
        default=fleet_planning.Replan(), description="When a new plan is worth a change."
    )
    prometheus: fleet_planning.Prometheus = Field(
        default=fleet_planning.Prometheus(profile="default"), description="Where measurements come from."
    )
    routing: fleet_operation.Routing = Field(
        default=fleet_operation.Routing(), description="How requests find their group."
    )
    rollout: fleet_operation.Rollout = Field(
        default=fleet_operation.Rollout(), description="How a plan is put in force."
    )
    plan_policy: fleet_operation.PlanPolicy = Field(
        default=fleet_operation.PlanPolicy(), description="Who decides that a plan is applied."
    )
    accepted_plan: fleet_operation.AcceptedPlan = Field(
        default=fleet_operation.AcceptedPlan(),
        description="The plan that people or git accepted; kvplan never writes it.",
    )
    suspend: Flag = Field(default=False, description="Stop planning and changing; what runs keeps running.")


class ServingFleet(ApiModel):
    """One model served by vLLM groups on a set of GPU nodes, planned by kvplan."""

    rules: ClassVar = (
        Rule(
            "self.metadata.name.size() <= 52 && !self.metadata.name.contains('.')",
            "use a name of at most 52 characters without dots: plans are named after the fleet",
            "metadata.name",
            lambda self: len(self.metadata.name) <= 52 and "." not in self.metadata.name,
        ),
    )

    api_version: Literal["kvplan.dev/v1alpha1"] = API_VERSION
    kind: Literal["ServingFleet"] = "ServingFleet"
    metadata: ObjectMeta
    spec: ServingFleetSpec = Field(description="What is wanted.")
    status: ServingFleetStatus = Field(default=ServingFleetStatus(), description="What was observed.")
