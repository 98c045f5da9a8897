"""Questions of the form "and if …": parsed from one line of text, applied to the planner's inputs.

Inputs: texts such as ``gpus=+8`` or ``rate.chat=x1.5``, and ``PlanningInputs``. Outputs: changed inputs that
a plan can be made from like any other. Pure.
"""

import re
from collections.abc import Callable, Iterable

from kvplan_operator.model.problem import PlanningInputs
from kvplan_operator.plan import what_if_changes as changes_to
from kvplan_operator.plan.what_if_changes import Change, Kind, Topic, bounded
from kvplan_solver.errors import InvalidInput

__all__ = ["FORMS", "Change", "Kind", "Topic", "apply_changes", "parse_change"]

FORMS = (
    "gpus=+8", "gpus=-4", "gpus=64", "rate.<class>=x1.5", "rate.<class>=12.5", "slo.<class>=800ms",
    "slo.<class>=2s", "lengths.<class>=x2", "ratio.<class>=20", "configuration.<name>=off",
)  # fmt: skip
"""Every form a change may take."""

_NUMBER = r"[0-9]+(?:\.[0-9]+)?"

_PATTERNS: tuple[tuple[str, Topic, Kind], ...] = (
    (r"gpus=(?P<value>[+-][0-9]+)", Topic.GPUS, Kind.ADD),
    (r"gpus=(?P<value>[0-9]+)", Topic.GPUS, Kind.SET),
    (rf"rate\.(?P<name>[^=]+)=x(?P<value>{_NUMBER})", Topic.RATE, Kind.TIMES),
    (rf"rate\.(?P<name>[^=]+)=(?P<value>{_NUMBER})", Topic.RATE, Kind.SET),
    (rf"slo\.(?P<name>[^=]+)=(?P<value>{_NUMBER})(?P<unit>ms|s)", Topic.SLO, Kind.SET),
    (rf"lengths\.(?P<name>[^=]+)=x(?P<value>{_NUMBER})", Topic.LENGTHS, Kind.TIMES),
    (r"ratio\.(?P<name>[^=]+)=(?P<value>[0-9]+)", Topic.RATIO, Kind.SET),
    (r"configuration\.(?P<name>[^=]+)=off", Topic.CONFIGURATION, Kind.OFF),
)


def parse_change(text: str) -> Change:
    """One change from its text.

    Raises:
        InvalidInput: the text has none of the allowed forms, which are listed, or its number is too large.
    """
    for pattern, topic, kind in _PATTERNS:
        found = re.fullmatch(pattern, text.strip())
        if found:
            parts = found.groupdict()
            value = float(parts.get("value") or 0)
            scale = 0.001 if parts.get("unit") == "ms" else 1.0
            return bounded(Change(topic, parts.get("name") or "", kind, value * scale, text.strip()))
    raise InvalidInput("what-if", "change", text, f"use one of {', '.join(FORMS)}")


def apply_changes(inputs: PlanningInputs, changes: Iterable[Change]) -> PlanningInputs:
    """The inputs with all changes made, in order.

    Raises:
        InvalidInput: a class or configuration that does not exist, or a value that makes no sense.
    """
    for change in changes:
        inputs = _APPLY[change.topic](inputs, change)
    return inputs


_APPLY: dict[Topic, Callable[[PlanningInputs, Change], PlanningInputs]] = {
    Topic.GPUS: changes_to.gpus,
    Topic.RATE: changes_to.rate,
    Topic.SLO: changes_to.slo,
    Topic.LENGTHS: changes_to.lengths,
    Topic.RATIO: changes_to.ratio,
    Topic.CONFIGURATION: changes_to.configuration,
}
