"""Reservations, shares, waiting, restarts, moves between slots: the books of the router core."""

from typing import Any

import pytest

from kvplan_router.core.in_flight import PeerReport
from kvplan_router.core.shares import Grant, grant
from kvplan_router.core.values import Outcome, PassThrough, Pick, Shed, Usage, Wait
from tests.unit.router_world import document, home, picked, request, request_class, router, routes, slot, slot_of, table

QUEUE = {"maxLength": 10, "deadlineMilliseconds": 2_000}
HOMES = {"t": home("a-0")}


def small(**fields: Any) -> dict[str, Any]:
    """Two slots with room for two requests each."""
    slots = [slot(f"a-{n}", budgetTokens=200) for n in range(2)]
    return document(slots=slots, classes=[request_class(**({"queue": QUEUE} | fields))])


def test_a_pick_carries_its_reservation_to_the_engine() -> None:
    pick = picked(router().decide(request(x_request_id="abc")))
    assert pick.headers["x-request-id"] == "abc-kvr100"
    assert pick.ticket.tokens == 100


@pytest.mark.parametrize("given", ["abc-kvr5", "abc-kvr5-kvr999999"])
def test_a_clients_own_claim_never_reaches_the_engine(given: str) -> None:
    assert picked(router().decide(request(x_request_id=given))).headers["x-request-id"] == "abc-kvr100"
    passed = router(document(mode="observe")).decide(request(x_request_id=given))
    assert isinstance(passed, PassThrough)
    assert passed.headers == {"x-request-id": "abc"}


def test_an_id_is_made_where_the_request_has_none() -> None:
    first, second = (picked(router(seed=n).decide(request())).headers["x-request-id"] for n in range(2))
    assert first.endswith("-kvr100")
    assert first != second


def test_tokens_come_back_exactly_once() -> None:
    made = router()
    pick = picked(made.decide(request()))
    assert (sum(made.state().reserved.values()), sum(made.state().in_flight.values())) == (100, 1)
    assert made.finish(pick.ticket, Usage(120, 30))
    assert not made.finish(pick.ticket, Usage(120, 30))
    assert (sum(made.state().reserved.values()), sum(made.state().in_flight.values())) == (0, 0)
    values = made.measurements().classes["chat"]
    assert (values.finished, values.sampled, values.output_tokens.total) == (1, 1, 30)


def test_no_slot_ever_holds_more_than_its_budget() -> None:
    made = router(small(queue={"maxLength": 0, "deadlineMilliseconds": 0}))
    decisions = [made.decide(request()) for _ in range(9)]
    assert sum(isinstance(d, Pick) for d in decisions) == 4
    assert made.state().reserved == {"a-0": 200, "a-1": 200}
    refused = decisions[-1]
    assert isinstance(refused, Shed)
    assert (refused.status, refused.retry_after) == (429, 1)


def test_a_key_waits_for_its_home_rather_than_leave_it() -> None:
    made = router(small(), HOMES)
    held = [picked(made.decide(request("t"))) for _ in range(2)]
    waits = made.decide(request("t", now=1.0))
    assert isinstance(waits, Wait)
    assert waits.deadline == 3.0
    assert made.release(1.5) == []
    made.finish(held[0].ticket)
    (released,) = made.release(1.5)
    assert released.ticket is waits.ticket
    assert slot_of(released.decision) == "a-0"
    assert picked(released.decision).outcome is Outcome.WAITED
    assert made.measurements().classes["chat"].queue_seconds.total == 0.5


def test_no_request_waits_longer_than_the_gateway_lets_it() -> None:
    made = router(small(), HOMES, longest_wait_seconds=0.5)
    for _ in range(2):
        made.decide(request("t"))
    waits = made.decide(request("t", now=1.0))
    assert isinstance(waits, Wait)
    assert waits.deadline == 1.5


def test_where_no_gateway_lets_requests_wait_they_are_refused_at_once() -> None:
    made = router(small(), HOMES, longest_wait_seconds=0.0)
    for _ in range(2):
        made.decide(request("t"))
    assert isinstance(made.decide(request("t", now=1.0)), Shed)


def test_a_class_that_says_other_leaves_a_full_home() -> None:
    made = router(small(shed="other"), HOMES)
    slots = [slot_of(made.decide(request("t"))) for _ in range(4)]
    assert slots == ["a-0", "a-0", "a-1", "a-1"]


def test_waiting_ends_at_the_deadline() -> None:
    made = router(small(), HOMES)
    for _ in range(2):
        made.decide(request("t"))
    waits = made.decide(request("t", now=1.0))
    assert isinstance(waits, Wait)
    assert made.next_deadline == 3.0
    (released,) = made.release(3.0)
    assert released.ticket is waits.ticket
    assert isinstance(released.decision, Shed)
    assert made.next_deadline is None


def test_a_full_queue_refuses() -> None:
    made = router(small(queue=QUEUE | {"maxLength": 1}), HOMES)
    for _ in range(2):
        made.decide(request("t"))
    assert isinstance(made.decide(request("t")), Wait)
    assert isinstance(made.decide(request("t")), Shed)


def test_a_client_that_leaves_the_queue_is_counted_once_and_frees_its_place() -> None:
    made = router(small(queue=QUEUE | {"maxLength": 1}), HOMES)
    for _ in range(2):
        made.decide(request("t"))
    waits = made.decide(request("t"))
    assert isinstance(waits, Wait)
    assert made.abandon(waits.ticket, 1.0)
    assert not made.abandon(waits.ticket, 1.0)
    assert isinstance(made.decide(request("t")), Wait)
    assert made.measurements().classes["chat"].outcomes[Outcome.ERROR] == 1


def test_a_cold_request_that_waits_is_taken_by_whoever_has_room_first() -> None:
    made = router(small())
    held = [picked(made.decide(request())) for _ in range(4)]
    assert isinstance(made.decide(request()), Wait)
    made.finish(held[0].ticket)
    assert [slot_of(r.decision) for r in made.release(0.0)] == [slot_of(held[0])]


def test_a_newcomer_does_not_pass_one_that_waits() -> None:
    made = router(small(), HOMES)
    held = [picked(made.decide(request("t"))) for _ in range(2)]
    first = made.decide(request("t"))
    made.finish(held[0].ticket)
    second = made.decide(request("t"))
    assert isinstance(first, Wait)
    assert isinstance(second, Wait)
    assert [r.ticket for r in made.release(0.0)] == [first.ticket]


def test_who_waits_for_a_slot_that_goes_away_is_placed_anew() -> None:
    made = router(small(), HOMES)
    for _ in range(2):
        made.decide(request("t"))
    waits = made.decide(request("t"))
    assert isinstance(waits, Wait)
    made.ready(frozenset({"a-1"}))
    (released,) = made.release(0.0)
    assert (released.ticket is waits.ticket, slot_of(released.decision)) == (True, "a-1")


def test_classes_share_a_full_slot_by_their_planned_tokens() -> None:
    classes = [
        request_class(name, match={"headers": [{"name": "x-class", "exact": name}]}, routes=routes(a=share),
                      queue={"maxLength": 100, "deadlineMilliseconds": 100_000})
        for name, share in (("big", 750), ("small", 250))
    ]  # fmt: skip
    made = router(document(classes=classes, slots=[slot("a-0", budgetTokens=100)]))
    held = picked(made.decide(request(x_class="big"))).ticket
    for _ in range(40):
        made.decide(request(x_class="big"))
        made.decide(request(x_class="small"))
    served = []
    for _ in range(40):
        made.finish(held)
        (released,) = made.release(0.0)
        held = picked(released.decision).ticket
        served.append(held.class_name)
    assert served.count("big") == 30


def test_admission_thins_evenly() -> None:
    made = router(document(classes=[request_class(admitMilli=300)], slots=[slot("a-0", budgetTokens=10**6)]))
    admitted = [isinstance(made.decide(request()), Pick) for _ in range(100)]
    assert sum(admitted) == 30
    assert all(2 <= sum(admitted[n : n + 10]) <= 4 for n in range(90))


def test_what_the_plan_does_not_admit_may_go_where_there_is_room_if_the_class_says_so() -> None:
    made = router(document(classes=[request_class(admitMilli=0, shed="other")]), {"chat": home("a-0")})
    assert picked(made.decide(request("t"))).outcome is Outcome.COLD


def test_the_response_says_who_served_and_the_books_follow() -> None:
    made = router(small(), HOMES)
    pick = picked(made.decide(request("t")))
    made.served(pick.ticket, "10.1.0.1:8000")
    state = made.state()
    assert (state.in_flight, state.reserved, state.served_elsewhere) == (
        {"a-0": 0, "a-1": 1},
        {"a-0": 0, "a-1": 100},
        1,
    )
    made.finish(pick.ticket)
    assert set(made.state().reserved.values()) | set(made.state().in_flight.values()) == {0}


def test_tokens_stay_where_they_are_if_the_server_has_no_room_for_them() -> None:
    made = router(small())
    picks = [picked(made.decide(request())) for _ in range(4)]
    moved = next(p for p in picks if slot_of(p) == "a-0")
    made.served(moved.ticket, "10.1.0.1:8000")
    assert made.state().reserved == {"a-0": 200, "a-1": 200}
    assert made.state().in_flight == {"a-0": 1, "a-1": 3}
    for pick in picks:
        made.finish(pick.ticket)
    assert set(made.state().reserved.values()) | set(made.state().in_flight.values()) == {0}


def test_while_observing_requests_count_where_the_gateway_sent_them_and_reserve_nothing() -> None:
    made = router(small() | {"mode": "observe"}, HOMES)
    passed = made.decide(request("t"))
    assert isinstance(passed, PassThrough)
    assert made.state().in_flight == {"a-0": 0, "a-1": 0}
    made.served(passed.ticket, "10.1.0.1:8000")
    state = made.state()
    assert (state.in_flight["a-1"], state.reserved["a-1"], state.served_elsewhere) == (1, 0, 0)
    assert made.finish(passed.ticket, Usage(120, 30))
    assert made.state().in_flight["a-1"] == 0
    assert made.measurements().classes["chat"].sampled == 1


def test_a_process_that_the_index_does_not_list_says_so_and_reserves_nothing() -> None:
    head = document(routers=[{"identity": "other", "shareMilli": 1000}])
    assert router(head, identity="other").state().listed
    made = router(head, identity="new")
    assert not made.state().listed
    assert isinstance(made.decide(request()), Shed)


def test_an_unknown_server_changes_nothing() -> None:
    made = router(small(), HOMES)
    pick = picked(made.decide(request("t")))
    made.served(pick.ticket, "10.9.9.9:1")
    assert made.state().in_flight["a-0"] == 1


def test_the_books_outlive_a_table() -> None:
    made = router(small(), HOMES)
    pick = picked(made.decide(request("t")))
    made.install(*table(small() | {"generation": 2}, HOMES))
    assert made.state().reserved["a-0"] == 100
    made.finish(pick.ticket)
    assert made.state().reserved["a-0"] == 0


def test_a_slot_that_is_gone_is_remembered_until_it_is_idle() -> None:
    made = router(small(), HOMES)
    pick = picked(made.decide(request("t")))
    without = small() | {"generation": 2, "slots": [slot("a-1", budgetTokens=200)]}
    made.install(*table(without, HOMES))
    assert made.state().in_flight == {"a-0": 1, "a-1": 0}
    made.finish(pick.ticket)
    made.install(*table(without | {"generation": 3}, HOMES))
    assert made.state().in_flight == {"a-1": 0}


def test_what_engines_hold_at_start_counts_as_reserved_until_it_ends() -> None:
    made = router(small(), HOMES)
    made.engines({"a-0": 2})
    assert made.state().reserved["a-0"] == 200
    assert isinstance(made.decide(request("t")), Wait)
    made.engines({"a-0": 5})  # somebody else's newcomers do not count as left over
    assert made.state().reserved["a-0"] == 200
    made.engines({"a-0": 1})
    assert [slot_of(r.decision) for r in made.release(0.0)] == ["a-0"]


GRANTS: dict[str, tuple[tuple[int, int, dict[str, int], str], Grant]] = {
    "no list: a single process": ((1000, 100, {}, "r"), Grant(1000, pooled=False)),
    "equal shares": ((1001, 100, {"r": 500, "q": 500}, "r"), Grant(500, pooled=False)),
    "a process not listed owns nothing": ((1000, 100, {"q": 1000}, "r"), Grant(0, pooled=False)),
    "a listed process with no share owns nothing": ((1000, 100, {"r": 0, "q": 1000}, "r"), Grant(0, pooled=False)),
    "a budget below one reservation is shared, too": ((90, 100, {"r": 500, "q": 500}, "r"), Grant(45, pooled=False)),
}  # fmt: skip


@pytest.mark.parametrize("sentence", GRANTS)
def test_shares_of_a_budget(sentence: str) -> None:
    (budget, largest, routers, identity), expected = GRANTS[sentence]
    assert grant(budget, largest, routers, identity, "a-0") == expected


def test_fewer_processes_own_a_slot_whose_shares_are_too_small_for_one_request() -> None:
    routers = {f"r{n}": 250 for n in range(4)}
    granted = [grant(1000, 400, routers, name, "a-0") for name in routers]
    assert sorted(g.tokens for g in granted) == [0, 0, 500, 500]
    assert all(g.pooled for g in granted)
    owners = {tuple(grant(1000, 400, routers, name, f"a-{n}").tokens for name in routers) for n in range(20)}
    assert len(owners) > 1


def test_a_pooled_slot_is_taken_only_when_every_listed_process_keeps_to_the_index() -> None:
    routers = [{"identity": f"r{n}", "shareMilli": 500} for n in range(2)]
    head = document(routers=routers, slots=[slot("a-0", budgetTokens=150)])
    owner = next(i for i in ("r0", "r1") if grant(150, 100, {"r0": 500, "r1": 500}, i, "a-0").tokens)
    peer = "r1" if owner == "r0" else "r0"
    made = router(head, identity=owner)
    assert made.state().limits == {"a-0": 0}
    made.peers([PeerReport(peer, {}, (head["epoch"], 0), 0.0)], 0.0)
    assert made.state().limits == {"a-0": 0}
    made.peers([PeerReport(peer, {}, (head["epoch"], 1), 0.0)], 0.0)
    assert made.state().limits == {"a-0": 150}


def test_a_smaller_share_is_acknowledged_only_once_it_is_kept() -> None:
    def head(generation: int, share: int) -> dict[str, Any]:
        routers = [{"identity": "router", "shareMilli": share}, {"identity": "other", "shareMilli": 1000 - share}]
        return document(generation=generation, routers=routers, slots=[slot("a-0")])

    made = router(head(1, 500))
    picks = [picked(made.decide(request())) for _ in range(5)]
    made.install(*table(head(2, 300)))
    assert (made.state().order[1], made.state().acknowledged[1]) == (2, 1)
    for pick in picks[:2]:
        made.finish(pick.ticket)
    assert made.state().acknowledged[1] == 2


def test_peers_count_for_load_and_leave_when_silent() -> None:
    made = router(document(slots=[slot("a-0"), slot("a-1")]))
    report = PeerReport("other", {"a-0": 7}, (0, 0), 10.0)
    made.peers([report], 10.5)
    assert {slot_of(made.decide(request())) for _ in range(5)} == {"a-1"}
    made.peers([report], 11.5)
    assert slot_of(made.decide(request())) == "a-0"


def test_a_slot_that_names_its_owners_belongs_to_them_alone() -> None:
    shares = [{"identity": "a", "shareMilli": 1000}]
    slots = [slot("a-0", budgetTokens=200, routers=shares)]
    listed = [{"identity": name, "shareMilli": 500} for name in ("a", "b")]
    limits = [router(document(slots=slots, routers=listed), identity=name).state().limits for name in ("a", "b")]
    assert limits == [{"a-0": 200}, {"a-0": 0}]


def test_a_class_newer_than_the_plan_is_counted_and_not_routed() -> None:
    made = router(document(classes=[request_class(routes=[], admitMilli=1000)]))
    assert isinstance(made.decide(request()), PassThrough)
    assert made.measurements().classes["chat"].outcomes[Outcome.UNPLANNED] == 1


def test_a_class_that_the_plan_rejects_is_shed() -> None:
    made = router(document(classes=[request_class(routes=[], admitMilli=0)]))
    assert isinstance(made.decide(request()), Shed)
