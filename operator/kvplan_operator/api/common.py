"""Types that several kinds use: metadata, selectors, conditions, and the small pieces of statuses.

They follow the core Kubernetes types of the same names. Pure data.
"""

import re
from enum import StrEnum
from itertools import pairwise
from typing import ClassVar

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from kvplan_operator.api.base import ATOMIC, ApiModel, Rule, keyed_by
from kvplan_operator.api.scalars import (
    LABEL_KEY_PATTERN,
    BigCount,
    LabelValue,
    Milli,
    ObjectName,
    ObservedGeneration,
    QualifiedName,
    Reason,
    Seconds,
    Text,
    Timestamp,
    Tokens,
)


class ObjectMeta(ApiModel):
    """Object metadata. Its schema is the API server's, so fields that kvplan does not use are kept."""

    model_config = ConfigDict(alias_generator=to_camel, extra="allow", frozen=True)

    name: ObjectName = Field(description="Name, unique in the namespace.")
    namespace: str = Field(default="default", description="Namespace of the object.")
    labels: dict[str, str] = Field(default={}, description="Labels.")
    annotations: dict[str, str] = Field(default={}, description="Annotations.")
    uid: str | None = Field(default=None, description="Identity over all time.")
    generation: BigCount | None = Field(default=None, description="Counts changes of spec.")


class SelectorOperator(StrEnum):
    """How a label is compared with the values."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class SelectorRequirement(ApiModel):
    """One requirement on a label."""

    rules: ClassVar = (
        Rule(
            "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
            "give values with In and NotIn, and none with Exists and DoesNotExist",
            "values",
            lambda self: (self.operator in ("In", "NotIn")) == bool(self.values),
        ),
    )

    key: QualifiedName = Field(description="Label key that the requirement is about.")
    operator: SelectorOperator = Field(description="How the label is compared with values.")
    values: tuple[LabelValue, ...] = Field(
        default=(), max_length=64, json_schema_extra=ATOMIC,
        description="Values to compare with; empty for Exists and DoesNotExist.",
    )  # fmt: skip


def label_keys(pattern: str, message: str) -> Rule:
    """The rule that every key of ``matchLabels`` matches ``pattern``; schemas cannot say it of a map's keys."""
    return Rule(
        f"!has(self.matchLabels) || self.matchLabels.all(key, key.matches('{pattern}'))",
        message,
        "matchLabels",
        lambda self: all(re.fullmatch(pattern, key) for key in self.match_labels),
    )


class LabelSelector(ApiModel):
    """A label selector as in every Kubernetes API: all parts must hold; an empty one selects everything."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

    rules: ClassVar = (label_keys(LABEL_KEY_PATTERN, "use label keys such as kvplan.dev/pool"),)

    match_labels: dict[str, LabelValue] = Field(
        default={}, max_length=32, description="Labels that must have exactly these values."
    )
    match_expressions: tuple[SelectorRequirement, ...] = Field(
        default=(), max_length=32, json_schema_extra=ATOMIC, description="Requirements on labels."
    )


class TolerationOperator(StrEnum):
    """How a toleration is compared with a taint."""

    EXISTS = "Exists"
    EQUAL = "Equal"


class TaintEffect(StrEnum):
    """What a taint does to pods."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Toleration(ApiModel):
    """A taint that the fleet's groups tolerate."""

    key: QualifiedName | None = Field(default=None, description="Taint key; absent tolerates every key.")
    operator: TolerationOperator = Field(
        default=TolerationOperator.EQUAL, description="Equal compares the value, Exists ignores it."
    )
    value: LabelValue | None = Field(default=None, description="Taint value for Equal.")
    effect: TaintEffect | None = Field(default=None, description="Effect; absent tolerates every effect.")
    toleration_seconds: Seconds | None = Field(
        default=None, description="Seconds a NoExecute taint is tolerated; absent means for ever."
    )


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(ApiModel):
    """One observation about an object, in the shape of ``metav1.Condition``."""

    type: Reason = Field(description="What the condition is about, for example Ready.")
    status: ConditionStatus = Field(description="Whether it holds: True, False or Unknown.")
    observed_generation: ObservedGeneration | None = Field(
        default=None, description="Generation of spec that the condition speaks of."
    )
    last_transition_time: Timestamp = Field(description="When status last changed.")
    reason: Reason = Field(description="Why, as one CamelCase word for programs.")
    message: Text = Field(description="Why and what to do, as a sentence for people.")


class Status(ApiModel):
    """What the status of every kind begins with."""

    observed_generation: ObservedGeneration = Field(
        default=-1, description="Generation of spec that this status speaks of; -1 before the first look."
    )
    conditions: tuple[Condition, ...] = Field(
        default=(), max_length=32, json_schema_extra=keyed_by("type"),
        description="Conditions, one per type; Ready, Reconciling and Stalled follow kstatus.",
    )  # fmt: skip


class Quantile(ApiModel):
    """One point of a length distribution."""

    probability_milli: Milli = Field(description="Share of requests at most this long, in thousandths.")
    tokens: Tokens = Field(description="Length in tokens at that share.")


def ascending(quantiles: tuple[Quantile, ...]) -> bool:
    """Whether lengths never fall while probabilities rise."""
    ordered = sorted(quantiles, key=lambda point: point.probability_milli)
    return all(a.tokens <= b.tokens for a, b in pairwise(ordered))
