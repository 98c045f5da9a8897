"""Install a candidate plan now, or hold the one in force: staleness against re-warming.

In: the plan in force, the candidate, the rates as they are now, and how long ago the last install was. Out: a
verdict with its reason and both penalties, which go to status. Source: 03-cacheroute §2; the paper's rule
"hold until staleness costs more than re-warming".
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from kvplan_solver.cacheroute.inputs import Floats
from kvplan_solver.cacheroute.key_plan import KeyPlan, Outcome, largest
from kvplan_solver.cacheroute.replan import pairs_to_warm, renumbered

REWARM_WINDOW_SECONDS = 30.0


class InstallReason(StrEnum):
    """Why a candidate is installed or held; a metric label."""

    FIRST_TABLE = "FirstTable"
    DESTINATION_GONE = "DestinationGone"
    STALE_LOAD = "StaleLoad"
    """The old table's largest load exceeds the candidate's by more than τ."""
    MORE_ADMITTED = "MoreAdmitted"
    """The candidate plans at least two points more of the traffic."""
    NOTHING_PLANNED = "NothingPlanned"
    """The candidate is no table; its own outcome says why."""
    DWELL = "Dwell"
    REWARM_BUDGET = "RewarmBudget"
    NO_GAIN = "NoGain"


_INSTALL = frozenset(
    {
        InstallReason.FIRST_TABLE,
        InstallReason.DESTINATION_GONE,
        InstallReason.STALE_LOAD,
        InstallReason.MORE_ADMITTED,
    }
)


@dataclass(frozen=True)
class InstallRules:
    """When to install.

    Attributes:
        load_tolerance: τ, tolerated excess of the old table's largest load.
        admitted_points: growth of the admitted share of traffic that is worth an install, fraction.
        rewarm_share: part of the fleet's seconds over 30 s that re-warming may cost.
        dwell_seconds: least time between installs, one table interval.
    """

    load_tolerance: float = 0.15
    admitted_points: float = 0.02
    rewarm_share: float = 0.05
    dwell_seconds: float = 30.0


@dataclass(frozen=True)
class Verdict:
    """The decision and what it was taken on.

    Attributes:
        reason: why.
        staleness: largest load of the table in force over the candidate's, at the new rates, minus 1.
        admitted_growth: share of traffic the candidate admits more, fraction.
        rewarm: estimated prefill seconds of the moved pairs over the fleet's seconds in 30 s.
    """

    reason: InstallReason
    staleness: float
    admitted_growth: float
    rewarm: float

    @property
    def install(self) -> bool:
        """Whether to install the candidate."""
        return self.reason in _INSTALL


def decide(
    current: KeyPlan | None,
    candidate: KeyPlan,
    since_install_seconds: float,
    rules: InstallRules | None = None,
) -> Verdict:
    """Install or hold.

    Args:
        current: the plan in force; None before the first.
        candidate: the new plan, made at the rates of now.
        since_install_seconds: time since the last install.
        rules: thresholds; None takes the defaults.
    """
    rules = rules or InstallRules()
    if candidate.outcome is not Outcome.PLANNED:
        return Verdict(InstallReason.NOTHING_PLANNED, 0.0, 0.0, 0.0)
    if current is None or current.outcome is not Outcome.PLANNED:
        return Verdict(InstallReason.FIRST_TABLE, 0.0, _admitted_share(candidate), 0.0)
    stale = staleness(current, candidate)
    growth = _admitted_share(candidate) - _carried_share(current, candidate)
    rewarm = rewarm_share(current, candidate)
    if not set(current.destinations) <= set(candidate.destinations):
        return Verdict(InstallReason.DESTINATION_GONE, stale, growth, rewarm)
    return Verdict(_reason(stale, growth, rewarm, since_install_seconds, rules), stale, growth, rewarm)


def _reason(stale: float, growth: float, rewarm: float, since: float, rules: InstallRules) -> InstallReason:
    if stale <= rules.load_tolerance and growth < rules.admitted_points:
        return InstallReason.NO_GAIN
    if since < rules.dwell_seconds:
        return InstallReason.DWELL
    if rewarm > rules.rewarm_share:
        return InstallReason.REWARM_BUDGET
    return InstallReason.STALE_LOAD if stale > rules.load_tolerance else InstallReason.MORE_ADMITTED


def staleness(current: KeyPlan, candidate: KeyPlan) -> float:
    """Largest relative load of the old table at the candidate's rates over the candidate's, minus 1."""
    best = candidate.largest_load
    return largest(loads_at(current, candidate), candidate.weights) / best - 1.0 if best > 0 else 0.0


def loads_at(current: KeyPlan, candidate: KeyPlan) -> Floats:
    """L[r] of the old table at the new rates, on the candidate's destinations, requests per second.

    What the old table does not plan, or planned on a destination that is gone, is spread by weight.
    """
    shares = np.repeat(_rates_now(current, candidate) / current.replicas, current.replicas)
    members = renumbered(current, candidate.destinations)[current.members]
    there = members >= 0
    planned = np.bincount(members[there], weights=shares[there], minlength=len(candidate.destinations))
    rest = max(0.0, _traffic(candidate) - float(planned.sum()))
    return np.asarray(planned + rest * candidate.weights / candidate.weights.sum())


def _rates_now(current: KeyPlan, candidate: KeyPlan) -> Floats:
    """New rate of each key of the old table; 0 for keys the candidate does not hold (they count as cold)."""
    at = np.minimum(np.searchsorted(candidate.keys, current.keys), len(candidate.keys) - 1)
    return np.asarray(np.where(candidate.keys[at] == current.keys, candidate.rates.rates[at], 0.0))


def _traffic(plan: KeyPlan) -> float:
    return plan.report.admitted_rate + plan.report.cold_rate


def _admitted_share(plan: KeyPlan) -> float:
    return plan.report.admitted_rate / _traffic(plan) if _traffic(plan) > 0 else 0.0


def _carried_share(current: KeyPlan, candidate: KeyPlan) -> float:
    """Share of today's traffic that the table in force plans."""
    total = _traffic(candidate)
    return float(_rates_now(current, candidate).sum()) / total if total > 0 else 0.0


def rewarm_share(current: KeyPlan, candidate: KeyPlan) -> float:
    """Prefill seconds to warm every pair the candidate adds, over the fleet's seconds in 30 s."""
    seconds = float(candidate.rates.saved_seconds[pairs_to_warm(current, candidate)].sum())
    return seconds / (REWARM_WINDOW_SECONDS * len(candidate.destinations))
