"""What gets in the way of a rollout: budgets that forbid every eviction, autoscalers that own replicas.

Inputs: the fleet's engine Deployments, PodDisruptionBudgets, HorizontalPodAutoscalers. Outputs: findings. Pure.
"""

from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from kvplan_cli.doctor.findings import Finding, Level, Unknown, not_seen
from kvplan_operator.api.common import LabelSelector
from kvplan_operator.model.pods import Object, labels_of, name_of, part
from kvplan_operator.model.selectors import selects


def obstacles(
    engines: Sequence[Object],
    budgets: Sequence[Object] | Unknown,
    autoscalers: Sequence[Object] | Unknown,
    about: str,
) -> Iterator[Finding]:
    """One line per object in the way; one line where nothing is."""
    found = [*_budgets(engines, budgets, about), *_autoscalers(engines, autoscalers, about)]
    yield from found or [Finding(Level.OK, "obstacles", about, "no budget or autoscaler is in the way")]


def _budgets(engines: Sequence[Object], budgets: Sequence[Object] | Unknown, about: str) -> Iterator[Finding]:
    if isinstance(budgets, Unknown):
        yield not_seen("budget", about, budgets)
        return
    for budget in budgets:
        status = part(budget, "status")
        blocks = status.get("expectedPods", 0) > 0 and status.get("disruptionsAllowed", 0) == 0
        held = [name_of(engine) for engine in engines if _covers(budget, engine)]
        if blocks and held:
            what = f"it allows no eviction now, of pods of {', '.join(held)}"
            remedy = "kvplan's own steps go on; kubectl drain waits: allow one pod to be unavailable"
            yield Finding(Level.WARN, "budget", f"PodDisruptionBudget {name_of(budget)}", what, remedy)


def _autoscalers(engines: Sequence[Object], autoscalers: Sequence[Object] | Unknown, about: str) -> Iterator[Finding]:
    if isinstance(autoscalers, Unknown):
        yield not_seen("autoscaler", about, autoscalers)
        return
    names = {name_of(engine) for engine in engines}
    for autoscaler in autoscalers:
        target = part(part(autoscaler, "spec"), "scaleTargetRef")
        if target.get("kind") == "Deployment" and target.get("name") in names:
            what = f"it owns the replicas of Deployment {target['name']}: kvplan plans flags and routing there"
            remedy = "remove it to let plans decide on the number of groups"
            yield Finding(Level.WARN, "autoscaler", f"HorizontalPodAutoscaler {name_of(autoscaler)}", what, remedy)


def _covers(budget: Object, engine: Object) -> bool:
    """Whether a budget's selector matches the pods of a Deployment; an empty one matches all."""
    selector = part(budget, "spec").get("selector")
    if selector is None:
        return False
    try:
        wanted = LabelSelector.model_validate(selector)
    except ValidationError:
        return False  # more or longer entries than kvplan reads: it cannot be told
    return selects(wanted, labels_of(part(part(engine, "spec"), "template")))
