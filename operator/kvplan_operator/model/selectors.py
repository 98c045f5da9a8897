"""Kubernetes label selectors and taints, evaluated on plain objects.

Inputs: the API's selectors and tolerations, labels and taints as core objects write them. Outputs: booleans
and the first taint that is not tolerated. Semantics: metav1.LabelSelector and core/v1 Toleration. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kvplan_operator.api.common import (
    LabelSelector,
    SelectorOperator,
    SelectorRequirement,
    Toleration,
    TolerationOperator,
)

BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")
"""Effects that keep new pods away; PreferNoSchedule does not."""


def selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether all parts of a selector hold; an empty selector selects everything."""
    exact = all(labels.get(key) == value for key, value in selector.match_labels.items())
    return exact and all(_holds(requirement, labels) for requirement in selector.match_expressions)


def _holds(requirement: SelectorRequirement, labels: Mapping[str, str]) -> bool:
    present, value = requirement.key in labels, labels.get(requirement.key)
    match requirement.operator:
        case SelectorOperator.IN:
            return present and value in requirement.values
        case SelectorOperator.NOT_IN:
            return not present or value not in requirement.values
        case SelectorOperator.EXISTS:
            return present
        case SelectorOperator.DOES_NOT_EXIST:
            return not present


def untolerated_taint(
    taints: Iterable[Mapping[str, Any]], tolerations: Sequence[Toleration]
) -> Mapping[str, Any] | None:
    """The first taint with a blocking effect that no toleration covers, or None."""
    for taint in taints:
        blocking = taint.get("effect") in BLOCKING_EFFECTS
        if blocking and not any(tolerates(toleration, taint) for toleration in tolerations):
            return taint
    return None


def tolerates(toleration: Toleration, taint: Mapping[str, Any]) -> bool:
    """Whether one toleration covers one taint, as the scheduler decides it."""
    if toleration.effect is not None and toleration.effect != taint.get("effect"):
        return False
    if toleration.key is not None and toleration.key != taint.get("key"):
        return False
    exists = toleration.operator is TolerationOperator.EXISTS
    # Without a key only Exists is valid in Kubernetes; Equal then covers nothing.
    return exists or (toleration.key is not None and (toleration.value or "") == taint.get("value", ""))
