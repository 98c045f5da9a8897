"""Which keys are in the next table: plan them next to those in force, then install or hold (03-cacheroute §2).

Inputs: the snapshot, the plan in force, the next slots, the table in force. Output: a frozen ``KeyDecision``.
Routers hash keys: the operator sees hashes only. A table is never emptied because rates are missing. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from kvplan_operator.model.snapshot import Quality, Snapshot
from kvplan_operator.plan.digest import plan_digest
from kvplan_operator.plan.index_head import Slot
from kvplan_operator.plan.planned import Planned
from kvplan_operator.plan.table_input import KeyRate, plan_or_replan, table_input
from kvplan_operator.route.engine_pods import EnginePod
from kvplan_operator.route.homes import key_plan_in_force
from kvplan_operator.route.published import Published
from kvplan_operator.route.routes import as_serving, routes_in_force
from kvplan_operator.route.slots import PublishedSlot, SlotState
from kvplan_solver.cacheroute.install import InstallReason, InstallRules, Verdict, decide
from kvplan_solver.cacheroute.key_plan import KeyPlan, Outcome
from kvplan_solver.errors import InvalidInput

RECOVERY_SECONDS = 60.0
"""A slot whose pod stops being Ready keeps its keys for so long: their backups serve them meanwhile."""

_USABLE = (Quality.VALUE, Quality.PARTIAL)


class KeyStep(StrEnum):
    """What happens to the keys; a metric label."""

    INSTALL = "install"
    HOLD = "hold"
    """The keys in force stay."""
    EMPTY = "empty"
    """No key has a fixed home."""


@dataclass(frozen=True, eq=False)
class KeyDecision:
    """What happens to the keys, and why.

    Attributes:
        step: install, hold or empty.
        plan: the keys to install.
        verdict: of install-or-hold, with both penalties; None where it was not asked.
        outcome: of the planner; None where it was not asked.
        notes: what a reader must know, a sentence each.
    """

    step: KeyStep
    plan: KeyPlan | None = None
    verdict: Verdict | None = None
    outcome: Outcome | None = None
    notes: tuple[str, ...] = ()


def decide_keys(
    snapshot: Snapshot,
    planned: Planned,
    slots: Sequence[PublishedSlot],
    pods: Sequence[EnginePod],
    before: Published,
    fingerprint: str,
) -> KeyDecision:
    """Install new keys, or hold those in force.

    Args:
        snapshot: with the key rates.
        planned: the plan in force.
        slots: of the next index.
        pods: behind the slots.
        before: what the cluster has.
        fingerprint: of the secret that the rates' keys are hashed under.
    """
    rates = _rates(snapshot, planned)
    current = _in_force(before, fingerprint, rates or ())
    nothing_to_keep = KeyStep.EMPTY if current is None else KeyStep.HOLD
    if rates is None:
        return KeyDecision(nothing_to_keep, outcome=Outcome.RATES_UNAVAILABLE)
    chosen = destinations(slots, pods, planned, current, snapshot.now)
    if not chosen:
        return KeyDecision(nothing_to_keep, notes=("no group serves yet: keys wait for one",))
    serving = [slot.configuration for slot in chosen]
    today = as_serving(planned, routes_in_force(planned, before.document, serving), serving)
    try:
        made = table_input(today, rates, chosen)
    except InvalidInput as error:
        return KeyDecision(nothing_to_keep, notes=(str(error),))
    candidate = plan_or_replan(made, current)
    if candidate.outcome is not Outcome.PLANNED:
        step = KeyStep.EMPTY if candidate.outcome is Outcome.NO_ROOM else nothing_to_keep
        return KeyDecision(step, outcome=candidate.outcome, notes=made.notes)
    verdict = decide(current, candidate, snapshot.now - before.installed, _rules(snapshot))
    install = _installs(verdict, snapshot, planned, before)
    return KeyDecision(
        KeyStep.INSTALL if install else KeyStep.HOLD,
        candidate if install else None,
        verdict,
        candidate.outcome,
        made.notes,
    )


def destinations(
    slots: Sequence[PublishedSlot],
    pods: Sequence[EnginePod],
    planned: Planned,
    current: KeyPlan | None,
    now: float,
) -> tuple[Slot, ...]:
    """The slots that may hold keys: those that serve, and those that only just stopped and may come back."""
    known = {k.name for k in planned.instance.configurations}
    by_uid = {pod.uid: pod for pod in pods}
    held = frozenset(current.destinations) if current else frozenset()
    return tuple(
        Slot(slot.name, slot.configuration, slot.budget_tokens)
        for slot in slots
        if slot.configuration in known
        and (slot.state is SlotState.SERVING or (slot.name in held and _recovering(slot, by_uid, now)))
    )


def _recovering(slot: PublishedSlot, pods: Mapping[str, EnginePod], now: float) -> bool:
    pod = pods.get(slot.pod_uid)
    if slot.state is not SlotState.GONE or pod is None:
        return False
    return not pod.terminating and now - pod.ready_changed < RECOVERY_SECONDS


def _rates(snapshot: Snapshot, planned: Planned) -> tuple[KeyRate, ...] | None:
    """The measured keys of the plan's classes; None where nobody measured."""
    fact = snapshot.measured.keys
    if fact is None or fact.value is None or fact.quality not in _USABLE:
        return None
    classes = {c.name for c in planned.instance.classes}
    # One hash under two classes cannot be told apart in the table: the hotter one counts.
    hottest: dict[int, KeyRate] = {}
    for row in fact.value:
        if row.class_name in classes:
            rate = KeyRate(row.class_name, row.key, row.requests_per_second, row.error_per_second)
            other = hottest.setdefault(row.key, rate)
            if other is not rate and _rank(rate) > _rank(other):
                hottest[row.key] = rate
    return tuple(hottest.values())


def _rank(rate: KeyRate) -> tuple[float, str]:
    return rate.requests_per_second, rate.class_name


def _in_force(before: Published, fingerprint: str, rates: Sequence[KeyRate]) -> KeyPlan | None:
    """The keys in force; None without any, under another secret, or where a shard is missing."""
    document = before.document
    if document is None or document["hash"]["fingerprint"] != fingerprint or before.table is None:
        return None
    measured = np.array([row.key for row in rates], dtype=np.uint64)
    return key_plan_in_force(before.table, document["hashBits"], measured)


def _rules(snapshot: Snapshot) -> InstallRules:
    return InstallRules(dwell_seconds=float(snapshot.fleet.spec.routing.table_interval_seconds))


def _installs(verdict: Verdict, snapshot: Snapshot, planned: Planned, before: Published) -> bool:
    if snapshot.fleet.spec.suspend:
        return verdict.reason is InstallReason.DESTINATION_GONE
    digest = (before.document or {}).get("planDigest")
    # Another plan routes classes elsewhere: keys must not stay where their class no longer goes.
    return verdict.install or digest != plan_digest(planned.plan.spec)
