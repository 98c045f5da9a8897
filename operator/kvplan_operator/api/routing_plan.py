"""RoutingPlan: one decision of the planner, immutable, named after the digest of its spec.

``spec`` is the decision plus a hash of the inputs that matter, integers only, so that the same inputs give
the same bytes; how it came about and how it goes are in ``status`` (``routing_plan_status``). Shares are
thousandths of what arrives: the rest of a class to 1000 is rejected. Pure data.
"""

from typing import ClassVar, Literal

from pydantic import Field

from kvplan_operator.api.base import ATOMIC, SET, ApiModel, Rule, keyed_by
from kvplan_operator.api.common import ObjectMeta
from kvplan_operator.api.fleet_enums import Method
from kvplan_operator.api.labels import API_VERSION
from kvplan_operator.api.routing_plan_status import RoutingPlanStatus
from kvplan_operator.api.scalars import (
    BlockTokens,
    ConfigurationName,
    Digest,
    DnsLabel,
    FlagName,
    FlagValue,
    FleetName,
    GroupCount,
    Milli,
    ObjectName,
    PositiveCount,
    PositiveMilli,
    PositiveTokens,
    Tokens,
)


class Placement(ApiModel):
    """Where one group runs."""

    stages: tuple[ObjectName, ...] = Field(
        min_length=1, max_length=64, json_schema_extra=ATOMIC,
        description="Node of each pipeline stage, in order; equal names mean the same node.",
    )  # fmt: skip


class EngineFlag(ApiModel):
    """One flag of the engine."""

    name: FlagName = Field(description="Name without leading hyphens, for example max-num-seqs.")
    value: FlagValue = Field(default="", description="Value; empty for a switch.")


class Group(ApiModel):
    """The groups of one configuration."""

    rules: ClassVar = (
        Rule(
            "!has(self.placements) || self.placements.size() in [0, self.replicas]",
            "give one placement per replica, or none",
            "placements",
            lambda self: len(self.placements) in (0, self.replicas),
        ),
        Rule(
            "self.budgetTokens <= self.kvCapacityTokens",
            "use a budgetTokens of at most kvCapacityTokens",
            "budgetTokens",
            lambda self: self.budget_tokens <= self.kv_capacity_tokens,
        ),
    )

    configuration: ConfigurationName = Field(description="Name of the fleet's configuration.")
    replicas: GroupCount = Field(description="Groups to run.")
    deployment: ObjectName | None = Field(
        default=None, description="Adopted Deployment that runs them. Absent: kvplan's own Deployments do."
    )
    placements: tuple[Placement, ...] = Field(
        default=(), max_length=1_024, json_schema_extra=ATOMIC,
        description="Where each group runs; advisory for adopted Deployments.",
    )  # fmt: skip
    engine_flags: tuple[EngineFlag, ...] = Field(
        default=(), max_length=64, json_schema_extra=keyed_by("name"),
        description="Flags the engines are started with, by name.",
    )  # fmt: skip
    kv_capacity_tokens: PositiveTokens = Field(description="KV tokens of one group that the plan counts on.")
    budget_tokens: Tokens = Field(description="KV tokens that requests in flight on one group may hold together.")
    max_sequences: PositiveCount = Field(description="Sequences one group runs at once.")


class Route(ApiModel):
    """The share of a class that goes to one configuration."""

    configuration: ConfigurationName = Field(description="Name of a configuration among the plan's groups.")
    share_milli: PositiveMilli = Field(description="Thousandths of the class's arrivals that go there.")
    reservation_tokens: Tokens = Field(
        description="KV tokens one request takes there, a cached prefix left out; a multiple of blockTokens."
    )


class ClassPlan(ApiModel):
    """What happens to the requests of one class."""

    rules: ClassVar = (
        Rule(
            "self.routes.map(r, r.shareMilli).sum() == self.admitMilli",
            "the shares of routes must add up to admitMilli",
            "admitMilli",
            lambda self: sum(route.share_milli for route in self.routes) == self.admit_milli,
        ),
        Rule(
            "!has(self.prefixCachedOn) || "
            "self.prefixCachedOn.all(name, self.routes.exists(r, r.configuration == name))",
            "list only configurations that the class is routed to",
            "prefixCachedOn",
            lambda self: set(self.prefix_cached_on) <= {route.configuration for route in self.routes},
        ),
        Rule(
            "self.routes.all(r, r.reservationTokens <= self.reservationTokens)",
            "a route reserves at most the class's reservationTokens",
            "routes",
            lambda self: all(r.reservation_tokens <= self.reservation_tokens for r in self.routes),
        ),
        Rule(
            "!has(self.reservedPromptTokens) || self.reservedPromptTokens <= self.reservationTokens",
            "the prompt is part of a reservation: use at most reservationTokens",
            "reservedPromptTokens",
            lambda self: (self.reserved_prompt_tokens or 0) <= self.reservation_tokens,
        ),
    )

    name: DnsLabel = Field(description="Name of the RequestClass.")
    reservation_tokens: Tokens = Field(
        description="KV tokens held per request, prompt included; a multiple of blockTokens."
    )
    reserved_prompt_tokens: Tokens | None = Field(
        default=None,
        description="Prompt that reservationTokens has room for, the class's 95 % quantile. Routers reserve less for "
        "a request whose prompt is shorter. Absent: every request takes the whole reservation.",
    )
    fractile_milli: Milli = Field(
        description="Critical fractile ratio/(ratio+1) that the reservation follows, in thousandths."
    )
    routes: tuple[Route, ...] = Field(
        max_length=32, json_schema_extra=keyed_by("configuration"),
        description="Where admitted requests go.",
    )  # fmt: skip
    prefix_cached_on: tuple[ConfigurationName, ...] = Field(
        default=(), max_length=32, json_schema_extra=SET,
        description="Configurations whose groups keep the class's shared prefix.",
    )  # fmt: skip
    cached_prefix_tokens: Tokens = Field(
        default=0, description="Tokens of the shared prefix that fill whole KV blocks."
    )
    admit_milli: Milli = Field(description="Thousandths of the class's arrivals that are admitted.")
    max_prompt_tokens: Tokens = Field(description="Longest prompt the plan makes room for.")
    max_output_tokens: PositiveTokens = Field(description="Longest output the plan makes room for.")


class RoutingPlanSpec(ApiModel):
    """The decision."""

    rules: ClassVar = (
        Rule("self == oldSelf", "a plan never changes: create another one"),
        Rule(
            "self.classes.all(c, c.routes.all(r, self.groups.exists(g, g.configuration == r.configuration)))",
            "route only to configurations that groups lists",
            "classes",
            lambda self: _routed(self) <= {group.configuration for group in self.groups},
        ),
        Rule(
            "self.blockTokens < 1 || self.classes.all(c, c.reservationTokens % self.blockTokens == 0 && "
            "c.routes.all(r, r.reservationTokens % self.blockTokens == 0))",
            "reservations must be multiples of blockTokens",
            "classes",
            lambda self: not any(tokens % self.block_tokens for tokens in _reservations(self)),
        ),
    )

    fleet_name: FleetName = Field(description="Fleet that the plan is for.")
    inputs_digest: Digest = Field(description="SHA-256 of the fleet and class fields that matter for planning.")
    method: Method = Field(description="How the plan was found.")
    block_tokens: BlockTokens = Field(default=16, description="Tokens of one KV block.")
    groups: tuple[Group, ...] = Field(
        max_length=32, json_schema_extra=keyed_by("configuration"),
        description="Groups to run, by configuration; those left out run none.",
    )  # fmt: skip
    classes: tuple[ClassPlan, ...] = Field(
        max_length=128, json_schema_extra=keyed_by("name"),
        description="What happens to the requests of each class.",
    )  # fmt: skip


class RoutingPlan(ApiModel):
    """One planned partition, reservation and routing for a fleet. Its spec never changes."""

    rules: ClassVar = (
        Rule(
            "self.metadata.name.startsWith(self.spec.fleetName + '-')",
            "name a plan <fleet>-<first 10 hex digits of its digest>",
            "metadata.name",
            lambda self: self.metadata.name.startswith(f"{self.spec.fleet_name}-"),
        ),
    )

    api_version: Literal["kvplan.dev/v1alpha1"] = API_VERSION
    kind: Literal["RoutingPlan"] = "RoutingPlan"
    metadata: ObjectMeta
    spec: RoutingPlanSpec = Field(description="The decision; its digest names the plan.")
    status: RoutingPlanStatus = Field(default=RoutingPlanStatus(), description="What was observed.")


def _routed(spec: RoutingPlanSpec) -> set[str]:
    return {route.configuration for plan in spec.classes for route in plan.routes}


def _reservations(spec: RoutingPlanSpec) -> list[int]:
    held = [plan.reservation_tokens for plan in spec.classes]
    return held + [route.reservation_tokens for plan in spec.classes for route in plan.routes]
