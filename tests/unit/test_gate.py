"""The gate lets a plan through or names the first thing in its way, with numbers and a remedy."""

from dataclasses import replace
from typing import Any

import pytest

from kvplan_operator.api.common import ConditionStatus
from kvplan_operator.api.conditions import ConditionReason, ConditionType
from kvplan_operator.gate.chain import GATES, in_force, judge
from kvplan_operator.gate.checks import change_cost, dwelt
from kvplan_operator.gate.gate_input import Freshness, Gain, Ground, History
from kvplan_operator.gate.verdict import Refusal, Verdict
from kvplan_operator.plan.choice import Standing
from kvplan_operator.plan.diff import PlanDiff, diff_plans
from tests.gating import AFTER, BEFORE, RETUNED, judged
from tests.routing_plans import NOW, class_plan, digest_of, group, plan_of

STALE = Freshness(ConditionStatus.FALSE, ConditionReason.METRICS_STALE, "the newest sample is from 16:00")
NO_PATH = Refusal(ConditionType.ROLLOUT_COMPLETE, ConditionReason.NO_CAPACITY_NEUTRAL_PATH, "no order of steps")

SUNDAY = {"rollout": {"window": {"days": ["Sunday"], "start": "17:00", "durationSeconds": 3600}}}
MONDAY = {"rollout": {"window": {"days": ["Monday"], "start": "02:00", "durationSeconds": 3600}}}


ACCEPTED = {"standing": Standing.ACCEPTED, "accepted": True}
IN_FORCE = {"standing": Standing.IN_FORCE, "change": diff_plans(AFTER, AFTER)}
RETURNING = {"standing": Standing.RETURNING}
RESTARTS = tuple(NOW - 60 * n for n in range(8))
FLIPS = tuple(NOW - 660 * n for n in range(5))
"""As of a tool that looks at git every ten minutes, and of engines that then load for one."""

CASES: dict[str, tuple[dict[str, Any], ConditionReason | None]] = {
    "what the policy picked passes when nothing is in its way": ({}, None),
    "a suspended fleet is left alone": ({"spec": {"suspend": True}}, ConditionReason.SUSPENDED),
    "a suspended fleet is left alone, whoever accepted the plan": (
        {"spec": {"suspend": True}} | ACCEPTED,
        ConditionReason.SUSPENDED,
    ),
    "a change under way stops when the fleet is suspended": (
        {"spec": {"suspend": True}} | IN_FORCE,
        ConditionReason.SUSPENDED,
    ),
    "the policy waits for fresh metrics": ({"freshness": STALE}, ConditionReason.METRICS_STALE),
    "an accepted digest needs no fresh metrics": ({"freshness": STALE} | ACCEPTED, None),
    "a return to the last good plan needs no fresh metrics": ({"freshness": STALE} | RETURNING, None),
    "a plan that breaks a constraint stays out": (
        {"problems": ("Memory tp2: 110 of 100",)},
        ConditionReason.CERTIFICATE_REJECTED,
    ),
    "a plan that breaks a constraint stays out even if it is accepted": (
        {"problems": ("Memory tp2: 110 of 100",)} | ACCEPTED,
        ConditionReason.CERTIFICATE_REJECTED,
    ),
    "a plan that cannot be checked stays out": ({"problems": None} | ACCEPTED, ConditionReason.RATES_UNAVAILABLE),
    "a change under way is finished though the load has grown": ({"problems": ("Memory",)} | IN_FORCE, None),
    "other GPUs than those of the solve ask for a new one": (
        {"ground": Ground("then", "now")},
        ConditionReason.INVENTORY_CHANGED,
    ),
    "an accepted plan may be older than a new node": ({"ground": Ground("then", "now")} | ACCEPTED, None),
    "a change under way that stops nothing goes on though a node is lost": (
        {"ground": Ground("then", "now", ("node b offers 0 of the 2 GPUs",)), "finishing": True} | IN_FORCE,
        None,
    ),
    "a change under way stops nothing more once a node is lost": (
        {"ground": Ground("then", "now", ("node b offers 0 of the 2 GPUs",))} | IN_FORCE,
        ConditionReason.INVENTORY_CHANGED,
    ),
    "a plan that people wrote names no inventory": ({"ground": Ground(None, "now")}, None),
    "an accepted plan needs its nodes": (
        {"ground": Ground("then", "now", ("node b offers 0 of the 2 GPUs",))} | ACCEPTED,
        ConditionReason.INVENTORY_CHANGED,
    ),
    "DryRun changes nothing": ({"spec": {"mode": "DryRun"}}, ConditionReason.PROPOSED_ONLY),
    "DryRun does not finish a change either": ({"spec": {"mode": "DryRun"}} | IN_FORCE, ConditionReason.PROPOSED_ONLY),
    "Approve waits for a digest": ({"spec": {"mode": "Approve"}}, ConditionReason.AWAITING_APPROVAL),
    "Approve applies the accepted digest": ({"spec": {"mode": "Approve"}} | ACCEPTED, None),
    "a cold change starts inside the window": ({"spec": SUNDAY}, None),
    "a cold change waits outside the window": ({"spec": MONDAY}, ConditionReason.OUTSIDE_WINDOW),
    "an accepted cold change waits outside the window": ({"spec": MONDAY} | ACCEPTED, ConditionReason.OUTSIDE_WINDOW),
    "a change under way is finished outside the window": ({"spec": MONDAY} | IN_FORCE, None),
    "new hot values need no window": (
        {"spec": MONDAY, "plan": RETUNED, "change": diff_plans(BEFORE, RETUNED)},
        None,
    ),
    "a young partition stays": ({"history": History(stands_since=NOW - 3_599)}, ConditionReason.DWELLING),
    "a change under way is finished before the next one starts": (
        {"history": History(stands_since=None)},
        ConditionReason.DWELLING,
    ),
    "an accepted digest does not wait": ({"history": History(stands_since=NOW - 10)} | ACCEPTED, None),
    "a partition that cannot serve is replaced at once": (
        {"history": History(stands_since=NOW - 10), "gain": Gain(float("inf"), 200.0, holds=False)},
        None,
    ),
    "the first plan has nothing to wait for": (
        {"history": History(), "gain": None, "change": diff_plans(None, AFTER)},
        None,
    ),
    "a saving of five per cent is not enough": ({"gain": Gain(300.0, 285.0)}, ConditionReason.SMALL_IMPROVEMENT),
    "a saving below the cost of the change is not enough": (
        {"history": History(stands_since=NOW - 7_200, load_seconds=3_600.0)},
        ConditionReason.SMALL_IMPROVEMENT,
    ),
    "one queue that never empties for another is not enough": (
        {"gain": Gain(float("inf"), float("inf"))},
        ConditionReason.SMALL_IMPROVEMENT,
    ),
    "a queue that empties again is": ({"gain": Gain(float("inf"), 200.0)}, None),
    "an accepted digest needs no saving": ({"gain": Gain(300.0, 400.0)} | ACCEPTED, None),
    "eight restarts in an hour are all there are": (
        {"history": History(NOW - 7_200, restarts=RESTARTS)},
        ConditionReason.RESTART_BUDGET_SPENT,
    ),
    "restarts of the hour before are forgotten": (
        {"history": History(NOW - 7_200, restarts=tuple(at - 3_600 for at in RESTARTS))},
        None,
    ),
    "a budget of none allows none": (
        {"spec": {"replan": {"maxRestartsPerHour": 0}}},
        ConditionReason.RESTART_BUDGET_SPENT,
    ),
    "a change under way waits for the budget": (
        {"history": History(restarts=RESTARTS), "unfinished": True} | IN_FORCE,
        ConditionReason.RESTART_BUDGET_SPENT,
    ),
    "a finished change needs no budget": ({"history": History(restarts=RESTARTS)} | IN_FORCE, None),
    "an accepted digest needs no budget": ({"history": History(restarts=RESTARTS)} | ACCEPTED, None),
    "a first start is no restart": (
        {"history": History(restarts=RESTARTS), "change": diff_plans(None, AFTER), "gain": None},
        None,
    ),
    "five flips in an hour are a fight": (
        {"history": History(NOW - 7_200, set_back=FLIPS)},
        ConditionReason.FOREIGN_WRITER,
    ),
    "a fight stops accepted digests too": (
        {"history": History(set_back=FLIPS)} | ACCEPTED,
        ConditionReason.FOREIGN_WRITER,
    ),
    "four flips are none": ({"history": History(NOW - 7_200, set_back=FLIPS[:4])}, None),
    "flips of an earlier time are forgotten": (
        {"history": History(NOW - 7_200, set_back=tuple(at - 3_600 for at in FLIPS))},
        None,
    ),
    "without a path nothing moves": ({"path": NO_PATH} | ACCEPTED, ConditionReason.NO_CAPACITY_NEUTRAL_PATH),
}


@pytest.mark.parametrize("sentence", CASES)
def test_gate(sentence: str) -> None:
    changes, reason = CASES[sentence]
    verdict = judge(judged(**changes))
    assert (verdict.refusal and verdict.refusal.reason) == reason
    assert verdict.go is (reason is None)
    assert verdict.digest == digest_of(changes.get("plan", AFTER))


WORDS: dict[str, tuple[dict[str, Any], str]] = {
    "a young partition says until when": (
        {"history": History(stands_since=NOW - 3_599)},
        "the partition stands since 2030-03-17T16:46:41Z and stays until 2030-03-17T17:46:41Z (replan.minDwellSeconds)",
    ),
    "a change under way says which": (
        {"history": History()},
        f"RoutingPlan {BEFORE.metadata.name} is still being put in force: another change waits for that",
    ),
    "a closed window says when it opens": (
        {"spec": MONDAY},
        "cold changes wait for rollout.window, which opens at 2030-03-18T02:00:00Z",
    ),
    "a small saving says how small": (
        {"gain": Gain(300.0, 290.0)},
        (
            "it saves 10 of 300 wasted tokens a second, not more than 15 (replan.minImprovementMilli): "
            "accept its digest to apply it anyway"
        ),
    ),
    "a spent budget says when there is more": (
        {"history": History(NOW - 7_200, restarts=RESTARTS)},
        (
            "8 groups were restarted within an hour, 8 are allowed (replan.maxRestartsPerHour): "
            "the next may follow at 2030-03-17T18:39:40Z"
        ),
    ),
    "a budget spent on a fight says so": (
        {"history": History(NOW - 7_200, restarts=RESTARTS, set_back=FLIPS[:1])},
        (
            "8 groups were restarted within an hour, 8 are allowed (replan.maxRestartsPerHour): "
            "the next may follow at 2030-03-17T18:39:40Z; "
            "another controller set kvplan's fields back 1 time since 2030-03-17T17:46:40Z: "
            "make it ignore replicas and engine flags"
        ),
    ),
    "a fight says how often": (
        {"history": History(NOW - 7_200, set_back=FLIPS)},
        (
            "another controller set kvplan's fields back 5 times since 2030-03-17T17:02:40Z: "
            "make it ignore replicas and engine flags"
        ),
    ),
    "a change dearer than its saving says both": (
        {"history": History(stands_since=NOW - 7_200, load_seconds=3_600.0)},
        (
            "2 restarts of 3600 s cost 7.2e+05 wasted tokens, it saves 3.6e+05 in 3600 s: "
            "accept its digest to apply it anyway"
        ),
    ),
}


@pytest.mark.parametrize("sentence", WORDS)
def test_a_refusal_has_numbers_and_a_remedy(sentence: str) -> None:
    changes, message = WORDS[sentence]
    refusal = judge(judged(**changes)).refusal
    assert refusal is not None
    assert refusal.message == message


def test_the_first_refusal_in_the_order_of_the_design_counts() -> None:
    everything = judged(
        spec={"suspend": True} | MONDAY, freshness=STALE, problems=("Memory",), ground=Ground("then", "now"),
        path=NO_PATH, history=History(NOW - 10, RESTARTS, FLIPS), gain=Gain(300.0, 300.0),
    )  # fmt: skip
    assert [gate.check.__name__ for gate in GATES if gate.check(everything)] == [
        "not_suspended", "metrics_fresh", "certificate_holds", "inventory_unchanged", "window_open", "dwelt",
        "improves_enough", "restart_budget_left", "no_foreign_writer", "path_exists",
    ]  # fmt: skip
    refusal = judge(everything).refusal
    assert refusal is not None
    assert refusal.reason is ConditionReason.SUSPENDED


def test_an_accepted_digest_passes_six_gates_and_the_word_that_accepts_it() -> None:
    assert [gate.check.__name__ for gate in GATES if Standing.ACCEPTED in gate.standings] == [
        "not_suspended", "certificate_holds", "inventory_unchanged", "accepted_or_policy", "window_open",
        "no_foreign_writer", "path_exists",
    ]  # fmt: skip


def test_cached_prefixes_are_part_of_the_cost_of_a_change() -> None:
    cached = class_plan(to="tp2", prefixCachedOn=["tp2"], cachedPrefixTokens=4_096)
    warm = plan_of((group("tp2", ("a", "b")),), (cached,))
    dearer = change_cost(judged(plan=warm, change=diff_plans(BEFORE, warm)))
    assert dearer - change_cost(judged()) == 2 * 4_096


def from_nothing() -> PlanDiff:
    """The usual change as a fleet without a group would make it."""
    return replace(judged().change, stopped=0, kept=0)


def test_groups_on_free_gpus_cost_nobody_work() -> None:
    assert change_cost(judged(change=from_nothing())) == 0 < change_cost(judged())


def test_a_fleet_without_a_group_waits_for_no_dwell() -> None:
    young = History(NOW - 10, (), ())
    assert dwelt(judged(change=from_nothing(), history=young)) is None
    assert dwelt(judged(history=young)) is not None


def test_the_plan_in_force_changes_only_with_the_verdict() -> None:
    refused = Verdict("new", NO_PATH)
    assert [in_force("old", verdict) for verdict in (None, refused, Verdict("new"))] == ["old", "old", "new"]
