"""Routes for any groups that happen to serve: shares add up to the plan's, and go nowhere that nothing serves."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kvplan_operator.route.routes import effective_routes

NAMES = ("tp1", "tp2", "tp4")
SHARES = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 333), max_size=3)
GROUPS = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 4), max_size=3)


def routes(shares: dict[str, int]) -> list[dict[str, Any]]:
    return [{"configuration": n, "shareMilli": s, "reservationTokens": 16} for n, s in sorted(shares.items())]


@settings(max_examples=300, deadline=None)
@given(SHARES, SHARES, GROUPS, GROUPS)
def test_shares_add_up_and_go_where_something_serves(
    planned: dict[str, int], before: dict[str, int], serving: dict[str, int], more: dict[str, int]
) -> None:
    wanted = {name: max(1, more.get(name, 0)) for name in planned} | more
    made = {
        r["configuration"]: r["shareMilli"] for r in effective_routes(routes(planned), routes(before), serving, wanted)
    }
    assert sum(made.values()) == sum(planned.values())
    assert set(made) <= {*planned, *before}
    if made != planned:
        assert all(serving.get(name) for name in made)
