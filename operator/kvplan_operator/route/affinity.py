"""Whether hot keys get a fixed home: what the spec says, else the gate on the measured work ratio (03-cacheroute §3).

Inputs: the snapshot, the plan in force, what the gate said last (kept beside the index). Output: a frozen
``AffinityDecision`` with the condition people read. A measurement that is missing for a while changes nothing. Pure.
"""

import math
from dataclasses import dataclass

import numpy as np

from kvplan_operator.api.conditions import ConditionReason
from kvplan_operator.api.fleet_enums import Affinity
from kvplan_operator.model.snapshot import Snapshot
from kvplan_operator.plan.planned import Planned
from kvplan_operator.plan.table_input import free_tokens
from kvplan_solver.cacheroute.gate import (
    OFF_BELOW,
    ON_AT,
    AffinityState,
    ReuseSample,
    WorkRatio,
    affinity_state,
    work_ratio,
)
from kvplan_solver.cacheroute.inputs import Floats

BEYOND_LAST = 10.0
"""A gap beyond the last bound counts as so many times that bound."""


@dataclass(frozen=True)
class AffinityDecision:
    """What the gate says.

    Attributes:
        on: whether keys get a fixed home.
        state: to remember for the next time.
        reason: why.
        message: why, for people; without numbers that move at rest.
        ratio: G ± where it was measured; for metrics and ``kvplan explain``.
        sample: what G was computed from.
    """

    on: bool
    state: AffinityState
    reason: ConditionReason
    message: str
    ratio: WorkRatio | None = None
    sample: ReuseSample | None = None


def decide_affinity(snapshot: Snapshot, planned: Planned | None, before: AffinityState) -> AffinityDecision:
    """On or off.

    Args:
        snapshot: with the reuse gaps.
        planned: the plan in force; without one there is no fixed home.
        before: what the gate said last.
    """
    wanted = snapshot.fleet.spec.routing.affinity
    if planned is None:
        return AffinityDecision(
            False, before, ConditionReason.GAIN_UNKNOWN, "No plan is in force: fixed homes need one."
        )
    if wanted is Affinity.OFF:
        return AffinityDecision(False, before, ConditionReason.SWITCHED_OFF, "routing.affinity is Off.")
    sample = reuse_sample(snapshot, planned)
    ratio = work_ratio(sample)
    # A missing measurement is no evidence against a gain shown before.
    state = before if ratio is None else affinity_state(ratio, before)
    if wanted is Affinity.ON:
        message = "routing.affinity is On, whatever the gate says."
        return AffinityDecision(True, state, ConditionReason.AS_PLANNED, message, ratio, sample)
    return AffinityDecision(state is AffinityState.ON, state, *_SAID[state], ratio, sample)


_TOO_SMALL = (
    ConditionReason.GAIN_TOO_SMALL,
    f"The work ratio has not reached {ON_AT:g}: fixed homes might cost more than they save.",
)
_SAID = {
    AffinityState.ON: (
        ConditionReason.GAIN_SHOWN,
        f"The work ratio reached {ON_AT:g} and has not fallen below {OFF_BELOW:g}.",
    ),
    AffinityState.OFF: _TOO_SMALL,
    AffinityState.SHADOW_REPLAY: _TOO_SMALL,
    AffinityState.UNKNOWN: (
        ConditionReason.GAIN_UNKNOWN,
        "No reuse gaps were measured yet: routers export them once requests carry keys.",
    ),
}


def reuse_sample(snapshot: Snapshot, planned: Planned) -> ReuseSample | None:
    """What the gate decides on; None where nothing was measured or nothing arrives.

    All work is in tokens of prefill over the measurement window. A generated token counts as the prefill tokens that
    take as long as its share of a decode step.
    """
    fact = snapshot.measured.reuse_gap
    value = None if fact is None else fact.value
    admitted = _admitted_rates(snapshot, planned)
    arriving = _prompt_tokens_per_second(planned, admitted)
    # No reuse at all means no keyed traffic in the window, a quiet night: no evidence either way.
    if value is None or sum(value[1]) <= 0 or arriving <= 0:
        return None
    bounds, tokens = (np.array(column, dtype=np.float64) for column in value)
    window = float(snapshot.fleet.spec.uncertainty.window_seconds)
    reused = float(tokens.sum())
    other = max(0.0, arriving * window - reused) + _decode_work_per_second(planned, admitted) * window
    return ReuseSample(
        gap_seconds=_finite(bounds),
        tokens=tokens,
        other_tokens=other,
        destinations=max(1, sum(planned.result.groups)),
        eviction_window_seconds=_eviction_window_seconds(planned, arriving),
    )


def _finite(bounds: Floats) -> Floats:
    finite = bounds[np.isfinite(bounds)]
    last = float(finite.max()) if finite.size else 1.0
    return np.where(np.isfinite(bounds), bounds, BEYOND_LAST * last)


def _admitted_rates(snapshot: Snapshot, planned: Planned) -> Floats:
    """λ_i·π_ik, requests per second, shape (I, K); as measured, so that they fit the reuse gaps, else as planned."""
    rates = np.array([_measured_rate(snapshot, c.name, c.arrival_rate) for c in planned.instance.classes])
    return np.asarray(planned.result.routing * rates[:, None])


def _measured_rate(snapshot: Snapshot, class_name: str, planned_rate: float) -> float:
    fact = snapshot.measured.classes.get(class_name)
    rate = None if fact is None or fact.value is None else fact.value.facts.requests_per_second
    return planned_rate if rate is None else rate


def _prompt_tokens_per_second(planned: Planned, admitted: Floats) -> float:
    mean = np.array([c.input_tokens_mean for c in planned.instance.classes])
    return float(admitted.sum(axis=1) @ mean)


def _decode_work_per_second(planned: Planned, admitted: Floats) -> float:
    """Generated tokens as the prefill tokens that take the same time of a group."""
    points = {point.configuration: point.frozen for point in planned.fixed_point.points}
    configurations = planned.instance.configurations
    batch = np.array([max(1.0, points.get(k.name, float(k.max_sequences))) for k in configurations])
    decode = np.array([k.decode_seconds_per_token for k in configurations]) / batch
    prefill = np.array([k.prefill_seconds_per_token for k in configurations])
    worth = np.divide(decode, prefill, out=np.ones_like(decode), where=prefill > 0)
    generated = np.array([float(np.mean(c.output_lengths)) for c in planned.instance.classes])
    return float(generated @ admitted @ worth)


def _eviction_window_seconds(planned: Planned, arriving: float) -> float:
    """How long an idle prefix survives: room for prefixes over what flows through it."""
    groups = np.array(planned.result.groups, dtype=np.float64)
    room = float(free_tokens(planned) @ groups)
    return room / arriving if math.isfinite(room) else 0.0
