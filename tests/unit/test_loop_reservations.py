"""When the loop's tests call a budget overdrawn."""

from e2e.loop.reservations import over, summed


def test_what_all_routers_reserve_together_may_not_exceed_the_budget() -> None:
    together = summed([{"tp8-0": 600, "tp8-1": 1}, {"tp8-0": 500}])
    assert over(together, {"tp8-0": 1_000, "tp8-1": 1_000}, {})[0] == ["tp8-0: 1100 of 1000"]
    assert over(together, {"tp8-0": 1_100, "tp8-1": 1_000}, {})[0] == []


def test_what_was_reserved_before_a_budget_shrank_may_end_but_not_grow() -> None:
    _, allowed = over({"tp8-0": 900}, {"tp8-0": 1_000}, {})
    wrong, allowed = over({"tp8-0": 900}, {"tp8-0": 500}, allowed)
    assert wrong == []
    wrong, allowed = over({"tp8-0": 700}, {"tp8-0": 500}, allowed)
    assert wrong == []
    assert over({"tp8-0": 701}, {"tp8-0": 500}, allowed)[0] == ["tp8-0: 701 of 700"]


def test_a_slot_that_is_new_has_its_budget_and_no_more() -> None:
    assert over({"tp4-0": 501}, {"tp4-0": 500}, {"tp8-0": 1_000})[0] == ["tp4-0: 501 of 500"]
