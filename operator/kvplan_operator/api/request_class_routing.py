"""RequestClass, what routers do with its requests: how keys are found, how long requests wait, what happens then.

Nothing here is an input of planning: a plan stays the same when any of it changes, and the next index carries the
change to the routers. Pure data.
"""

from enum import StrEnum
from typing import ClassVar

from pydantic import Field

from kvplan_operator.api.base import ATOMIC, ApiModel, Rule
from kvplan_operator.api.scalars import Count, HeaderName, JsonFieldName, PrefixBytes, QueueMilliseconds


class KeyRule(ApiModel):
    """One place where the value may stand that requests with a reusable prefix have in common."""

    rules: ClassVar = (
        Rule(
            "[has(self.header), has(self.jsonField), has(self.prefixBytes)].filter(x, x).size() == 1",
            "give exactly one of header, jsonField and prefixBytes",
            holds=lambda self: [self.header, self.json_field, self.prefix_bytes].count(None) == 2,
        ),
    )

    header: HeaderName | None = Field(default=None, description="The value of this request header, in lower case.")
    json_field: JsonFieldName | None = Field(
        default=None, description="The text of this field at the top of the JSON body."
    )
    prefix_bytes: PrefixBytes | None = Field(
        default=None, description="The first bytes of the messages, with model and cache_salt."
    )


class Keys(ApiModel):
    """How the key of a request is found."""

    rules_in_order: tuple[KeyRule, ...] = Field(
        alias="rules", min_length=1, max_length=8, json_schema_extra=ATOMIC,
        description="Tried in order; the first that finds a value wins. A request without any has no key.",
    )  # fmt: skip


class Queue(ApiModel):
    """How requests wait in a router while no group has room."""

    max_length: Count | None = Field(
        default=None,
        description="Requests of the class that wait at once in one router process; 0 lets none wait. Absent: what "
        "arrives within the latency target.",
    )
    deadline_milliseconds: QueueMilliseconds | None = Field(
        default=None, description="Longest wait, up to an hour. Absent: the latency target."
    )


class Shed(StrEnum):
    """What happens to a request that the plan does not admit, or whose key's home has no room."""

    OTHER = "Other"
    """It goes to another group of its class that has room, at the price of a cold cache; else as below."""
    TOO_MANY_REQUESTS = "TooManyRequests"
    """One that is not admitted is answered with 429; a key waits for its home in the queue."""
