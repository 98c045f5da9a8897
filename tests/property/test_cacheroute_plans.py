"""Statements about every plan: traffic is conserved, replicas are distinct and eligible, bounds hold."""

from random import Random
from typing import TypeVar

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kvplan_solver.cacheroute.inputs import Admission, Fleet, KeyRates, Settings, fleet, key_rates
from kvplan_solver.cacheroute.key_plan import KeyPlan, Outcome
from kvplan_solver.cacheroute.plan import plan_keys
from kvplan_solver.cacheroute.replan import replan_keys

relaxed = settings(deadline=None, max_examples=80)
"""A busy machine must not fail a test."""

T = TypeVar("T")

rates = st.one_of(st.floats(0.0, 50.0), st.sampled_from([np.nan, np.inf, -1.0, 0.0, 5.0, 10.0]))


@st.composite
def measured(draw: st.DrawFn) -> KeyRates:
    listed = draw(st.dictionaries(st.integers(0, 2**64 - 1), rates, max_size=40))
    classes = draw(st.lists(st.integers(0, 2), min_size=len(listed), max_size=len(listed)))
    sizes = draw(st.lists(st.integers(0, 30), min_size=len(listed), max_size=len(listed)))
    return key_rates(list(listed), list(listed.values()), class_of=classes, size_bytes=sizes)


def each(size: int, values: st.SearchStrategy[T]) -> st.SearchStrategy[list[T]]:
    """One value per destination."""
    return st.lists(values, min_size=size, max_size=size)


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    size = draw(st.integers(1, 7))
    return fleet(
        [f"a-{n}" for n in draw(st.permutations(range(size)))],
        warm_slots=draw(each(size, st.integers(0, 12))),
        weights=draw(each(size, st.sampled_from([0.0, 1.0, 1.0, 2.5]))),
        cold_load=draw(each(size, st.floats(0.0, 9.0))),
        shares=[draw(each(size, st.sampled_from([0.0, 0.3, 1.0]))) for _ in range(2)],
        byte_limits=draw(each(size, st.integers(0, 120))),
    )


planning = st.builds(
    Settings,
    q_cap=st.sampled_from([3.0, 10.0, 1e9]),
    eviction_window_seconds=st.sampled_from([None, 1.0]),
    admission=st.sampled_from(list(Admission)),
    knee=st.sampled_from([None, 30.0]),
)


def check_plan(plan: KeyPlan, sample: KeyRates, where: Fleet) -> None:
    """Everything that holds for any plan."""
    classes = plan.rates.class_of
    for row, (start, end) in enumerate(zip(plan.offsets[:-1], plan.offsets[1:], strict=True)):
        members = plan.members[start:end].tolist()
        assert members == sorted(set(members))
        assert members
        assert where.eligible[classes[row], members].all()
        if plan.backups[row] >= 0:
            assert len(members) == 1
            assert plan.backups[row] not in members
            assert where.eligible[classes[row], plan.backups[row]]
    assert (np.diff(plan.keys.astype(object)) > 0).all()
    assert plan.outcome is Outcome.PLANNED or not len(plan.keys)


def arriving(sample: KeyRates, where: Fleet) -> float:
    """Load that must be somewhere: the cold load and every valid rate of a class that is served."""
    served = [bool(row.any()) for row in where.eligible]
    valid = [
        float(rate)
        for rate, of in zip(sample.rates, sample.class_of, strict=True)
        if np.isfinite(rate) and rate > 0 and of < len(served) and served[of]
    ]
    return float(where.cold_load.sum()) + sum(valid)


@relaxed
@given(measured(), fleets(), planning)
def test_every_plan_keeps_to_its_budgets_and_conserves_the_traffic(
    sample: KeyRates, where: Fleet, how: Settings
) -> None:
    plan = plan_keys(sample, where, how)
    check_plan(plan, sample, where)
    if how.admission is Admission.SLOTS:
        assert plan.report.slots_used == plan.replicas.sum() <= plan.report.slots
    else:
        held = np.zeros(len(where.destinations))
        np.add.at(held, plan.members, np.repeat(plan.rates.size_bytes, plan.replicas))
        assert (held <= where.byte_limits).all()
    total = arriving(sample, where)
    assert np.isclose(plan.loads.sum(), total)
    assert np.isclose(plan.report.admitted_rate, plan.rates.rates.sum())
    assert np.isclose(plan.report.admitted_rate + plan.report.cold_rate, total)


@relaxed
@given(measured(), measured(), fleets(), fleets(), planning)
def test_every_replan_is_a_valid_plan_within_the_bound(
    old: KeyRates, new: KeyRates, before: Fleet, after: Fleet, how: Settings
) -> None:
    current = plan_keys(old, before, how)
    plan = replan_keys(new, after, how, current)
    fresh = plan_keys(new, after, how, current)
    check_plan(plan, new, after)
    assert plan.outcome is fresh.outcome
    if how.admission is Admission.SLOTS:
        assert plan.keys.tolist() == fresh.keys.tolist()
        assert plan.largest_load <= (1 + how.epsilon) * fresh.largest_load * (1 + 1e-9)
    else:
        held = np.zeros(len(after.destinations))
        np.add.at(held, plan.members, np.repeat(plan.rates.size_bytes, plan.replicas))
        assert (held <= after.byte_limits + 1e-9).all()


@relaxed
@given(measured(), fleets(), planning, st.randoms(use_true_random=False))
def test_no_plan_depends_on_the_order_of_its_keys(
    sample: KeyRates, where: Fleet, how: Settings, shuffle: Random
) -> None:
    order = list(range(len(sample)))
    shuffle.shuffle(order)
    mixed = key_rates(
        sample.keys[order],
        sample.rates[order],
        class_of=sample.class_of[order],
        size_bytes=sample.size_bytes[order],
    )
    one, two = plan_keys(sample, where, how), plan_keys(mixed, where, how)
    for column in ("members", "offsets", "backups", "loads", "initial_load"):
        assert np.array_equal(getattr(one, column), getattr(two, column)), column
    assert one.report == two.report
