"""The words that fields of ServingFleet may hold. ``Ambiguity`` and ``Method`` are the solver's own."""

from enum import StrEnum

from kvplan_solver.instance import Ambiguity
from kvplan_solver.result import Method

__all__ = [
    "Admission", "Affinity", "Ambiguity", "KvDtype", "Method", "PolicyMode", "RoutingMode", "TemplateKind",
    "Unmatched", "Weekday", "WeightDtype", "WriteMode",
]  # fmt: skip


class WeightDtype(StrEnum):
    """Number format of weights."""

    FP32 = "FP32"
    BF16 = "BF16"
    FP16 = "FP16"
    FP8 = "FP8"
    INT8 = "INT8"
    INT4 = "INT4"
    FP4 = "FP4"


class KvDtype(StrEnum):
    """Number format of the KV cache."""

    FP32 = "FP32"
    BF16 = "BF16"
    FP16 = "FP16"
    FP8 = "FP8"


class TemplateKind(StrEnum):
    """Kinds that hold a pod template."""

    POD_TEMPLATE = "PodTemplate"
    DEPLOYMENT = "Deployment"


class WriteMode(StrEnum):
    """Where engine flags are written."""

    ARGS = "Args"
    """The container's args."""
    CONFIG_FILE = "ConfigFile"
    """A file given to ``vllm serve --config``."""


class RoutingMode(StrEnum):
    """What the routers are told."""

    PLAN = "Plan"
    OBSERVE = "Observe"
    OFF = "Off"


class Unmatched(StrEnum):
    """What happens to a request that matches no class."""

    COLD_TAIL = "ColdTail"
    """It goes to the less loaded of two groups."""
    REJECT = "Reject"


class Admission(StrEnum):
    """What keys compete for."""

    SLOTS = "Slots"
    BYTES = "Bytes"


class Affinity(StrEnum):
    """Whether hot keys get a fixed home."""

    AUTO = "Auto"
    ON = "On"
    OFF = "Off"


class Weekday(StrEnum):
    """A day of the week."""

    MONDAY = "Monday"
    TUESDAY = "Tuesday"
    WEDNESDAY = "Wednesday"
    THURSDAY = "Thursday"
    FRIDAY = "Friday"
    SATURDAY = "Saturday"
    SUNDAY = "Sunday"


class PolicyMode(StrEnum):
    """Who decides that a plan is applied."""

    DRY_RUN = "DryRun"
    APPROVE = "Approve"
    AUTO = "Auto"
