"""Ranking, hysteresis, bytes, tenants and the error of a rate."""

import numpy as np
import pytest

from kvplan_solver.cacheroute.admission import greedy_fit
from kvplan_solver.cacheroute.fairness import tenant_shares
from kvplan_solver.cacheroute.inputs import Admission, Settings, fleet, key_rates
from kvplan_solver.cacheroute.key_plan import KeyPlan, Outcome
from kvplan_solver.cacheroute.plan import plan_keys
from kvplan_solver.errors import InvalidInput

TWO = ["a-0", "a-1"]


def planned(plan: KeyPlan) -> list[int]:
    return [int(key) for key in plan.keys]


def test_greedy_fit_equals_the_plain_loop() -> None:
    generator = np.random.default_rng(3)
    for _ in range(200):
        cost = generator.integers(1, 9, generator.integers(0, 30)).astype(float)
        budget, left, expected = float(generator.integers(0, 60)), 0.0, []
        left = budget
        for item in cost:
            expected.append(item <= left)
            left -= item if item <= left else 0.0
        assert greedy_fit(cost, budget).tolist() == expected


def test_admitted_key_keeps_its_place_against_one_less_than_a_tenth_hotter() -> None:
    narrow, settings = fleet(["a-0"], warm_slots=1), Settings(q_cap=100.0)
    before = plan_keys(key_rates([1, 2], [10.0, 9.0]), narrow, settings)
    assert planned(plan_keys(key_rates([1, 2], [10.0, 10.9]), narrow, settings, before)) == [1]
    assert planned(plan_keys(key_rates([1, 2], [10.0, 11.1]), narrow, settings, before)) == [2]


def test_keys_rank_by_the_part_of_their_rate_that_is_sure() -> None:
    rates = key_rates([1, 2], [10.0, 9.0], errors=[4.0, 0.5])
    assert planned(plan_keys(rates, fleet(["a-0"], warm_slots=1), Settings(q_cap=100.0))) == [2]


def test_key_whose_error_exceeds_half_its_rate_is_not_planned() -> None:
    plan = plan_keys(key_rates([1, 2], [10.0, 9.0], errors=[5.1, 4.5]), fleet(TWO, warm_slots=4), Settings(99.0))
    assert planned(plan) == [2]
    assert plan.report.dropped.unreliable == 1


@pytest.mark.parametrize(("seconds", "adequate"), [(None, None), (27.0, False), (28.0, True)])
def test_measurement_window_must_hold_seventy_requests_per_slot(seconds: float | None, adequate: bool | None) -> None:
    settings = Settings(q_cap=99.0, measurement_seconds=seconds)
    plan = plan_keys(key_rates([1], [10.0]), fleet(TWO, warm_slots=2), settings)
    assert plan.report.window_adequate is adequate


def test_bytes_admission_ranks_by_saved_seconds_times_rate_and_not_by_size() -> None:
    rates = key_rates([1, 2], [5.0, 4.0], size_bytes=[1.0, 60.0], saved_seconds=[0.1, 2.0])
    limited = fleet(["a-0"], warm_slots=0, byte_limits=60.0)
    assert planned(plan_keys(rates, limited, Settings(q_cap=99.0, admission=Admission.BYTES))) == [2]


def test_bytes_of_no_destination_exceed_its_limit() -> None:
    generator = np.random.default_rng(4)
    keys = generator.integers(0, 2**64, 400, dtype=np.uint64)
    sizes = generator.integers(1, 50, 400).astype(float)
    rates = key_rates(keys, generator.lognormal(0, 1.5, 400), size_bytes=sizes)
    limits = [300.0, 500.0, 700.0]
    plan = plan_keys(
        rates,
        fleet(["a-0", "a-1", "a-2"], warm_slots=0, byte_limits=limits),
        Settings(q_cap=5.0, admission=Admission.BYTES),
    )
    held = np.bincount(plan.members, weights=np.repeat(plan.rates.size_bytes, plan.replicas), minlength=3)
    assert (held <= limits).all()
    assert held.sum() > 0.95 * sum(limits)


def test_prefix_that_fits_the_fleet_but_no_destination_is_unplaced_and_counted_as_cold() -> None:
    rates = key_rates([1, 2], [5.0, 4.0], size_bytes=[80.0, 30.0])
    plan = plan_keys(rates, fleet(TWO, warm_slots=0, byte_limits=60.0), Settings(q_cap=99.0, admission=Admission.BYTES))
    assert planned(plan) == [2]
    assert (plan.report.unplaced, plan.report.admitted_rate, plan.report.cold_rate) == (1, 4.0, 5.0)


def test_byte_limits_of_zero_turn_affinity_off() -> None:
    plan = plan_keys(key_rates([1], [1.0]), fleet(TWO, warm_slots=9), Settings(9.0, admission=Admission.BYTES))
    assert plan.outcome is Outcome.NO_ROOM


def test_one_of_several_tenants_gets_at_most_its_share_of_the_slots() -> None:
    rates = key_rates(range(10), [10.0 - n for n in range(10)], tenant_of=[0] * 8 + [1] * 2)
    plan = plan_keys(rates, fleet(TWO, warm_slots=3), Settings(q_cap=99.0, tenant_share=0.5))
    shares = tenant_shares(plan, rates)
    assert [(line.tenant, line.slots) for line in shares] == [(0, 3), (1, 2)]
    assert plan.report.tenant_capped == 5


def test_single_tenant_is_not_capped() -> None:
    rates = key_rates(range(6), [1.0] * 6)
    plan = plan_keys(rates, fleet(TWO, warm_slots=3), Settings(q_cap=99.0, tenant_share=0.5))
    assert len(plan.keys) == 6


def test_key_that_another_tenant_pushes_out_is_reported_for_its_tenant() -> None:
    narrow, settings = fleet(["a-0"], warm_slots=1), Settings(q_cap=99.0)
    before = plan_keys(key_rates([1, 2], [5.0, 4.0], tenant_of=[0, 1]), narrow, settings)
    rates = key_rates([1, 2], [5.0, 50.0], tenant_of=[0, 1])
    after = plan_keys(rates, narrow, settings, before)
    lines = tenant_shares(after, rates, before)
    assert [(line.tenant, line.slots, line.displaced) for line in lines] == [(0, 0, 1), (1, 1, 0)]


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda: key_rates([1, 1], [1.0, 2.0]), "0000000000000001"),
        (lambda: key_rates([1, 2], [1.0]), "rates"),
        (lambda: key_rates([1, 2], [1.0, 2.0], errors=[0.1]), "errors"),
        (lambda: key_rates([1], [1.0], size_bytes=[-1.0]), "size_bytes"),
        (lambda: key_rates([1], [1.0], saved_seconds=[np.inf]), "saved_seconds"),
        (lambda: Settings(q_cap=0.0), "q_cap"),
        (lambda: Settings(q_cap=float("nan")), "q_cap"),
        (lambda: Settings(q_cap=1.0, epsilon=-0.1), "epsilon"),
        (lambda: Settings(q_cap=1.0, tenant_share=0.0), "tenant_share"),
        (lambda: fleet([], warm_slots=1), "destinations"),
        (lambda: fleet(["a-0", "a-0"], warm_slots=1), "destinations"),
        (lambda: fleet(["a-0"], warm_slots=1, weights=[np.nan]), "weights"),
        (lambda: fleet(["a-0"], warm_slots=1, cold_load=[-1.0]), "cold_load"),
    ],
)
def test_input_that_makes_no_sense_is_refused_by_name(build: object, named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        build()  # type: ignore[operator]


def test_keys_of_a_class_without_destinations_are_counted() -> None:
    routed = fleet(TWO, warm_slots=9, shares=[[1.0, 1.0], [0.0, 0.0]])
    plan = plan_keys(key_rates([1, 2, 3], [1.0, 2.0, 3.0], class_of=[0, 1, 9]), routed, Settings(q_cap=9.0))
    assert planned(plan) == [1]
    assert plan.report.dropped.ineligible == 2
