"""What one look tells of in logs and metrics. Inputs: the look. Outputs: at most one line per decision, and gauges."""

from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.logs import Decision, FleetLog
from kvplan_operator.metrics import Metrics
from kvplan_operator.reconcile.rendering import Look


def report(look: Look, log: FleetLog, metrics: Metrics) -> None:
    """Tell of a look that is over."""
    _log(look, log)
    _measure(look, metrics)


def _log(look: Look, log: FleetLog) -> None:
    decided, shelf = look.decided, look.plans.shelf
    name = shelf.name_of(decided.choice.target) if decided.choice.target else ""
    refusal = None if decided.verdict is None else decided.verdict.refusal
    if refusal is not None:
        log.decided(Decision("gate", refusal.reason.value, refusal.message, name))
    else:
        log.decided(Decision("gate", decided.choice.reason.value, decided.choice.message, name))
    if look.table is not None and look.table.publication is not None:
        generation = look.table.publication.generation
        numbers = {"slots": len(look.table.publication.document["slots"]), "tableGeneration": generation}
        log.decided(Decision("table", str(generation), f"table generation {generation} is published", name, numbers))
    progress = decided.progress
    if progress is not None and progress.complete:
        log.decided(Decision("rollout", "Complete", f"{name} is in force", name, {"groups": progress.steps}))


def _measure(look: Look, metrics: Metrics) -> None:
    metadata = look.snapshot.fleet.metadata
    fleet, progress = f"{metadata.namespace}/{metadata.name}", look.decided.progress
    moving = progress is not None and not progress.complete
    metrics.rollout_steps.labels(fleet).set(progress.steps if progress is not None and moving else 0)
    metrics.rollout_step.labels(fleet).set(progress.step if progress is not None and moving else 0)
    for condition in look.snapshot.fleet.status.conditions:
        for status in ConditionStatus:
            metrics.condition.labels(fleet, condition.type, status.value).set(condition.status is status)
    table = look.snapshot.fleet.status.table
    if table is not None:
        metrics.table_generation.labels(fleet).set(table.generation)
        metrics.table_keys.labels(fleet).set(table.keys)
