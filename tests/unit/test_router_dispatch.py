"""The four rows of docs/contracts/dispatch.md, order of destinations, subset hints, unmatched requests, modes."""

from collections import Counter
from typing import Any

import pytest

from kvplan_router.core.values import NeedBody, Outcome, PassThrough, Shed
from kvplan_solver.cacheroute.table import Home
from tests.unit.router_world import document, home, picked, request, request_class, router, routes, slot, slot_of

HOMES = {
    "one": home("a-0", backup="a-1"),
    "gone": home("a-9", backup="a-1"),
    "lost": home("a-9"),
    "two": home("a-0", "a-1"),
}

ROWS: dict[str, tuple[str | None, Outcome, set[str]]] = {
    "a key with one destination goes there": ("one", Outcome.PLANNED, {"a-0"}),
    "a key with two stays in its home": ("two", Outcome.PLANNED, {"a-0", "a-1"}),
    "the one destination does not serve: the planned backup": ("gone", Outcome.BACKUP, {"a-1"}),
    "no backup: as if the key were not in the table": ("lost", Outcome.COLD, {"a-0", "a-1", "a-2"}),
    "a key outside the table is drawn by route shares": ("new", Outcome.COLD, {"a-0", "a-1", "a-2"}),
    "a request without a key is drawn, too": (None, Outcome.COLD, {"a-0", "a-1", "a-2"}),
}


@pytest.mark.parametrize("sentence", ROWS)
def test_the_rows_of_the_contract(sentence: str) -> None:
    tenant, outcome, slots = ROWS[sentence]
    made = router(homes=HOMES)
    picks = []
    for _ in range(60):
        picks.append(picked(made.decide(request(tenant))))
        made.finish(picks[-1].ticket)
    assert {pick.outcome for pick in picks} == {outcome}
    assert {pick.ticket.account.slot for pick in picks} == slots
    assert made.measurements().classes["chat"].outcomes[outcome] == 60


def test_equal_loads_are_broken_at_random() -> None:
    made = router(homes=HOMES)
    count: Counter[str] = Counter()
    for _ in range(400):
        pick = picked(made.decide(request("two")))
        count[pick.ticket.account.slot] += 1
        made.finish(pick.ticket)
    assert max(count.values()) < 1.3 * 200


def test_the_least_loaded_member_of_a_home_is_taken() -> None:
    made = router(homes=HOMES)
    first = slot_of(made.decide(request("two")))
    assert slot_of(made.decide(request("two"))) != first


def test_a_session_stays_on_its_member() -> None:
    made = router(
        document(slots=[slot(f"a-{n}", budgetTokens=100_000) for n in range(5)]), {"t": home("a-0", "a-1", "a-2")}
    )
    for session in ("s1", "s2", "s3", "s4"):
        seen = set()
        for _ in range(5):
            pick = picked(made.decide(request("t", session)))
            seen.add(pick.ticket.account.slot)
            made.finish(pick.ticket)
        assert len(seen) == 1


def test_sessions_spread_over_the_members() -> None:
    made = router(document(slots=[slot(f"a-{n}") for n in range(3)]), {"t": home("a-0", "a-1", "a-2")})
    count: Counter[str] = Counter()
    for n in range(900):
        pick = picked(made.decide(request("t", f"session {n}")))
        count[pick.ticket.account.slot] += 1
        made.finish(pick.ticket)
    assert min(count.values()) > 240


def test_a_session_leaves_a_member_that_is_much_busier() -> None:
    made = router(document(slots=[slot(f"a-{n}", budgetTokens=100_000) for n in range(3)]), {"t": home("a-0", "a-1")})
    slots = [slot_of(made.decide(request("t", "s"))) for _ in range(6)]
    assert slots[:5] == slots[:1] * 5  # up to four more than the idle one
    assert slots[5] != slots[0]


def test_the_papers_rule_ignores_the_session() -> None:
    made = router(homes=HOMES, session_hash=False)
    first, second = (slot_of(made.decide(request("two", "s"))) for _ in range(2))
    assert first != second


def test_the_papers_rule_draws_from_the_whole_fleet() -> None:
    head = document(slots=[slot("a-0"), slot("b-0")])
    assert {slot_of(router(head, seed=s).decide(request())) for s in range(9)} == {"a-0"}
    assert {slot_of(router(head, seed=s, route_weights=False).decide(request())) for s in range(9)} == {"a-0", "b-0"}


def test_two_choices_follow_the_route_shares() -> None:
    head = document(
        classes=[request_class(routes=routes(a=800, b=200))],
        slots=[slot(name, budgetTokens=10_000_000) for name in ("a-0", "a-1", "b-0", "b-1")],
    )
    made, count = router(head), Counter[str]()
    for _ in range(2000):
        pick = picked(made.decide(request()))
        count[pick.ticket.account.slot[0]] += 1
        made.finish(pick.ticket)
    assert count["a"] == pytest.approx(1600, rel=0.05)


def test_the_less_loaded_of_two_is_taken() -> None:
    made = router(document(slots=[slot("a-0"), slot("a-1")]))
    slots = Counter(slot_of(made.decide(request())) for _ in range(12))
    assert max(slots.values()) - min(slots.values()) <= 2


ORDERS: dict[str, tuple[str | None, list[str]]] = {
    "the rest of the home follows": ("two", ["a-0", "a-1"]),
    "the planned backup follows": ("one", ["a-0", "a-1"]),
}


@pytest.mark.parametrize("sentence", ORDERS)
def test_the_destinations_are_ordered_and_at_least_two(sentence: str) -> None:
    tenant, slots = ORDERS[sentence]
    pick = picked(router(homes=HOMES).decide(request(tenant)))
    assert sorted(pick.destinations) == [f"10.1.0.{name[-1]}:8000" for name in slots]


def test_a_planned_destination_without_a_backup_is_named_before_another_one() -> None:
    made = router(homes={"alone": home("a-0")})
    seconds = set()
    for _ in range(40):
        pick = picked(made.decide(request("alone")))
        made.finish(pick.ticket)
        first, second = pick.destinations
        assert first == "10.1.0.0:8000"
        seconds.add(second)
    assert seconds == {"10.1.0.1:8000", "10.1.0.2:8000"}


def test_the_only_destination_is_named_alone() -> None:
    made = router(document(slots=[slot("a-0")]), {"alone": home("a-0")})
    assert picked(made.decide(request("alone"))).destinations == ("10.1.0.0:8000",)


def test_a_cold_pick_names_the_other_draw_and_each_destination_once() -> None:
    made = router()
    for _ in range(20):
        destinations = picked(made.decide(request())).destinations
        assert len(destinations) == len(set(destinations)) == 2


SUBSETS: dict[str, tuple[Any, str, Outcome, set[str]]] = {
    "the planned destination is allowed": (["10.1.0.0:8000", "10.1.0.2:8000"], "one", Outcome.PLANNED, {"a-0"}),
    "only another one is allowed": (["10.1.0.2:8000"], "one", Outcome.SUBSET, {"a-2"}),
    "entries may lack the port": (["10.1.0.2"], "new", Outcome.SUBSET, {"a-2"}),
    "a comma-separated text will do": ("10.1.0.2:8000, 10.1.0.1", "new", Outcome.SUBSET, {"a-1", "a-2"}),
    "a hint that allows all changes nothing": (
        "10.1.0.0,10.1.0.1,10.1.0.2", "new", Outcome.COLD, {"a-0", "a-1", "a-2"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("sentence", SUBSETS)
def test_a_subset_hint_is_kept(sentence: str) -> None:
    subset, tenant, outcome, slots = SUBSETS[sentence]
    made = router(homes=HOMES)
    for _ in range(30):
        pick = picked(made.decide(request(tenant, subset=subset)))
        assert (pick.outcome, pick.ticket.account.slot in slots) == (outcome, True)
        made.finish(pick.ticket)


def test_a_subset_hint_is_forgotten_with_its_request() -> None:
    made = router(homes=HOMES)
    for _ in range(3):
        assert picked(made.decide(request("one", subset=["10.1.0.2"]))).outcome is Outcome.SUBSET
        assert picked(made.decide(request("one"))).destinations == ("10.1.0.0:8000", "10.1.0.1:8000")


@pytest.mark.parametrize("subset", [[], "", ["10.9.9.9:8000"], "nonsense,,"])
def test_a_subset_hint_without_a_match_is_unavailable(subset: Any) -> None:
    made = router(homes=HOMES)
    decision = made.decide(request("one", subset=subset))
    assert isinstance(decision, Shed)
    assert decision.status == 503
    assert made.measurements().classes["chat"].outcomes[Outcome.ERROR] == 1


def test_an_ipv6_subset_entry_matches_with_and_without_port() -> None:
    head = document(slots=[slot("a-0", address="[fd00::1]:8000"), slot("a-1", address="[fd00::2]:8000")])
    for entry in ("[fd00::2]:8000", "[fd00::2]", "fd00::2"):
        assert slot_of(router(head).decide(request(subset=[entry]))) == "a-1"


@pytest.mark.parametrize("state", [{"state": "draining"}, {"state": "gone"}, {"weightMilli": 0}, {"address": ""}])
def test_a_slot_that_does_not_serve_gets_no_new_request(state: dict[str, Any]) -> None:
    unserving = {k: v for k, v in (slot("a-0") | state).items() if v != ""}
    made = router(document(slots=[unserving, slot("a-1"), slot("a-2")]), HOMES)
    assert "a-0" not in {slot_of(made.decide(request("one"))) for _ in range(5)}
    assert "a-0" not in {slot_of(made.decide(request())) for _ in range(5)}


def test_a_slot_whose_pod_is_not_ready_gets_no_new_request() -> None:
    made = router(homes=HOMES)
    made.ready(frozenset({"a-1", "a-2"}))
    assert picked(made.decide(request("one"))).outcome is Outcome.BACKUP
    made.ready(None)
    assert picked(made.decide(request("one"))).outcome is Outcome.PLANNED


def test_nothing_ready_is_unavailable() -> None:
    made = router(homes=HOMES)
    made.ready(frozenset())
    decision = made.decide(request("one"))
    assert isinstance(decision, Shed)
    assert decision.status == 503


def test_a_request_of_no_class_goes_anywhere_or_is_refused_as_the_index_says() -> None:
    head = document(classes=[request_class(match={"headers": [{"name": "x-class", "exact": "chat"}]})])
    assert picked(router(head).decide(request())).outcome is Outcome.COLD
    made = router(head | {"unmatched": "Reject"})
    refused = made.decide(request())
    assert isinstance(refused, Shed)
    assert refused.status == 404
    assert made.measurements().classes["(unmatched)"].outcomes[Outcome.SHED] == 1


def test_observing_overrides_nothing_but_counts() -> None:
    made = router(document(mode="observe"), HOMES)
    assert isinstance(made.decide(request("one")), PassThrough)
    values = made.measurements()
    assert values.classes["chat"].outcomes[Outcome.UNPLANNED] == 1
    assert [count.class_name for count in values.keys] == ["chat"]


def test_a_body_is_asked_for_only_where_it_decides() -> None:
    rules = [{"kind": "header", "name": "X-Tenant-ID"}, {"kind": "field", "name": "user"}]
    head = document(classes=[request_class(keyRules=rules)])
    made = router(head)
    assert isinstance(made.decide(request()), NeedBody)
    assert sum(made.measurements().classes["chat"].outcomes.values()) == 0
    assert picked(made.decide(request("t")))
    assert picked(made.decide(request(body=b'{"user": "u"}')))
    assert picked(made.decide(request(body=b"")))


def test_the_index_may_name_homes_that_no_slot_has() -> None:
    assert picked(router(homes={"t": Home(("z-0", "z-1"), None)}).decide(request("t"))).outcome is Outcome.COLD
