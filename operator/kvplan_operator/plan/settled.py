"""Measurements that move only when they moved: inside 10 % of what was planned from, the old number stays.

Inputs: the measurements planned from before, the fresh ones. Output: measurements to plan from. At constant load
with ±5 % noise nothing moves, so that the same inputs give the same plan, no cold change follows from noise, and a
plan at the edge of a constraint does not break its certificate every other minute. Zero and absent are never
smoothed over. Pure. Source: 04-control-loop §4 (invariants).
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np

from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.model.facts import ClassFacts
from kvplan_operator.model.inventory import Inventory
from kvplan_operator.model.observed import planning_inputs
from kvplan_operator.model.priors.resolve import Measurement
from kvplan_operator.model.problem import PlanningInputs
from kvplan_operator.model.remembered import remembered_lengths
from kvplan_operator.model.snapshot import Snapshot
from kvplan_solver.instance import Floats
from kvplan_solver.units import from_milli

BAND = 0.1
"""Relative distance, of the larger number, within which a measurement did not move."""
LEVELS = np.arange(1, 17) / 16
"""Quantiles by which two samples of lengths are compared."""

Record = TypeVar("Record", bound=Any)


def settled_inputs(
    snapshot: Snapshot,
    facts: Mapping[str, ClassFacts],
    measured: Mapping[str, Measurement] | None = None,
    inventory: Inventory | None = None,
) -> PlanningInputs:
    """What to plan from: fresh where it moved; a class that nothing is heard of now keeps what was known of it.

    Args:
        snapshot: one look at the fleet.
        facts: as of ``settled``.
        measured: as of ``settled``.
        inventory: as of ``planning_inputs``.

    Raises:
        InvalidInput: as ``planning_inputs`` does.
    """
    fresh = settled(planning_inputs(snapshot, inventory), facts, measured)
    silent = {c.metadata.name for c in snapshot.classes if _is_silent(snapshot, c.metadata.name)}
    known = {
        name: found.completed_by(facts.get(name, ClassFacts())) if name in silent else found
        for name, found in fresh.facts.items()
    }
    return replace(fresh, facts=known)


def _is_silent(snapshot: Snapshot, name: str) -> bool:
    fact = snapshot.measured.classes.get(name)
    return fact is None or fact.value is None


def settled(
    fresh: PlanningInputs, facts: Mapping[str, ClassFacts], measured: Mapping[str, Measurement] | None = None
) -> PlanningInputs:
    """Fresh inputs with every measurement that did not move as it was before.

    Args:
        fresh: what was just observed.
        facts: what was planned from last, by class; ``facts_in_status`` after a start.
        measured: the same by configuration.
    """
    return replace(
        fresh,
        facts={name: _settled_record(facts.get(name), found) for name, found in fresh.facts.items()},
        measured={name: _settled_record((measured or {}).get(name), m) for name, m in fresh.measured.items()},
    )


def facts_in_status(classes: Sequence[RequestClass]) -> dict[str, ClassFacts]:
    """What the statuses of classes remember of their measurements, to settle on after a start."""
    return {c.metadata.name: _remembered(c) for c in classes}


def moved(before: float, fresh: float) -> bool:
    """Whether a number differs by more than the band; from or to zero always."""
    if before == 0 or fresh == 0:
        return before != fresh
    return abs(before - fresh) > BAND * max(abs(before), abs(fresh))


def _remembered(request_class: RequestClass) -> ClassFacts:
    rate = request_class.status.requests_per_second_milli
    return ClassFacts(
        requests_per_second=None if rate is None else from_milli(rate),
        output_lengths=remembered_lengths(request_class),
    )


def _settled_record(before: Record | None, fresh: Record) -> Record:
    """A record of the same type, field by field."""
    if before is None:
        return fresh
    kept = {f.name: getattr(before, f.name) for f in fields(fresh)}
    stays = {name: value for name, value in kept.items() if _same(value, getattr(fresh, name))}
    return replace(fresh, **stays)


def _same(before: object, fresh: object) -> bool:
    if isinstance(before, np.ndarray) and isinstance(fresh, np.ndarray):
        return _same_lengths(before, fresh)
    if isinstance(before, int | float) and isinstance(fresh, int | float):
        return not moved(float(before), float(fresh))
    return False


def _same_lengths(before: Floats, fresh: Floats) -> bool:
    """Whether no quantile moved; a token more or less is none."""
    if not before.size or not fresh.size:
        return False
    pairs = zip(np.quantile(before, LEVELS), np.quantile(fresh, LEVELS), strict=True)
    return not any(moved(float(a), float(b)) and abs(a - b) > 1 for a, b in pairs)
