"""Which router processes there are, what they have, and how they share the budgets."""

from typing import Any

from kvplan_operator.route.acknowledge import acknowledgement, common_fingerprint, router_processes, starting
from kvplan_operator.route.published import Published
from kvplan_operator.route.share_round import NOBODY, Shares, share_round
from kvplan_operator.route.slots import PublishedSlot, SlotState
from tests.routing import a_fleet, engine, router_pod, snapshot, state

SLOTS = (PublishedSlot("tp1-0", "tp1", SlotState.SERVING, 10_000),)
URL = "http://router.example:9090"


def shares(look: Any, before: Published | None = None) -> Shares:
    known = before or Published("uid", "1", 7)
    return share_round(known, router_processes(look), SLOTS, {"tp1": 500}, known.generation + 1)


def listed(made: Shares) -> dict[str, int]:
    return {entry["identity"]: entry["shareMilli"] for entry in made.routers}


def index(made: Shares, generation: int) -> Published:
    """What the cluster has after this was written."""
    document = {"generation": generation, "routers": made.routers, "slots": [slot.to_wire() for slot in SLOTS]}
    return Published("uid", "1", 7, generation, document, held=made.held)


def test_pods_of_the_selector_are_routers_and_others_are_not() -> None:
    pods = [router_pod("b"), router_pod("a", ready=False), router_pod("c", terminating=True), engine("engine")]
    found = router_processes(snapshot(pods))
    assert [(r.source, r.live, r.leaving) for r in found] == [
        ("a", False, False),
        ("b", True, False),
        ("c", False, True),
    ]


def test_a_listed_url_is_live_and_has_a_name_once_it_answers() -> None:
    of = a_fleet(routing={"routers": {"urls": [URL]}})
    silent = router_processes(snapshot(of=of))
    assert [(r.source, r.identity, r.live) for r in silent] == [(URL, None, True)]
    heard = router_processes(snapshot(of=of, routers={URL: state("edge", (7, 3))}))
    assert [(r.identity, r.has((7, 3)), r.has((8, 1))) for r in heard] == [("edge", True, False)]


def test_only_live_routers_are_waited_for() -> None:
    pods = [router_pod("a"), router_pod("b", ready=False), router_pod("c", terminating=True)]
    look = snapshot(pods, routers={"a": state("a", (7, 3))})
    known = acknowledgement(router_processes(look), (7, 3))
    assert known.everyone
    assert known.message == "Every live router (1) has generation 3."
    assert acknowledgement(router_processes(look), (7, 4)).behind == ("a",)


def test_a_router_starts_until_the_index_names_it_by_the_name_it_says() -> None:
    pods = [router_pod("a"), router_pod("b", ready=False), router_pod("c", terminating=True)]
    silent = router_processes(snapshot(pods, routers={"a": state("a")}))
    heard = router_processes(snapshot(pods, routers={"a": state("a"), "b": state("10.0.0.2:9004")}))
    by_pod = [{"identity": "a", "shareMilli": 500}, {"identity": "b", "shareMilli": 500}]
    by_name = [{"identity": "a", "shareMilli": 500}, {"identity": "10.0.0.2:9004", "shareMilli": 500}]
    assert starting(silent, by_pod) == ("b",)
    assert starting(heard, by_pod) == ("b",)
    assert starting(heard, by_name) == ()


def test_without_a_live_router_nobody_is_waited_for_and_it_is_said() -> None:
    known = acknowledgement(router_processes(snapshot()), (7, 3))
    assert (known.everyone, known.live) == (True, 0)
    assert known.message.startswith("No live router")


def test_a_tie_of_fingerprints_keeps_the_one_in_force() -> None:
    routers = {"a": state("a", fingerprint="a" * 16), "b": state("b", fingerprint="b" * 16)}
    found = router_processes(snapshot([router_pod("a"), router_pod("b")], routers=routers))
    assert common_fingerprint(found, "b" * 16) == "b" * 16
    assert common_fingerprint(found, "") == "a" * 16
    assert common_fingerprint((), "c" * 16) == "c" * 16


def test_an_index_without_routers_gives_nobody_anything() -> None:
    assert shares(snapshot()).routers == [NOBODY]


def test_routers_that_start_with_the_fleet_share_at_once() -> None:
    assert listed(shares(snapshot([router_pod("a"), router_pod("b", ready=False)]))) == {"a": 500, "b": 500}


def test_a_newcomer_gets_its_share_after_the_owner_let_go() -> None:
    one = index(shares(snapshot([router_pod("a")])), 1)
    pods = [router_pod("a"), router_pod("b")]
    two = shares(snapshot(pods, routers={"a": state("a", (7, 1))}), one)
    assert listed(two) == {"a": 500}
    assert two.held == {"*": {"a": (1000, 2)}}
    busy = {"a": state("a", (7, 2), reserved={"tp1-0": 7_000})}
    assert listed(shares(snapshot(pods, routers=busy), index(two, 2))) == {"a": 500}
    idle = {"a": state("a", (7, 2), reserved={"tp1-0": 4_000})}
    assert listed(shares(snapshot(pods, routers=idle), index(two, 2))) == {"a": 500, "b": 500}


def test_a_process_that_is_gone_leaves_its_share_and_one_on_its_way_out_keeps_it() -> None:
    both = index(shares(snapshot([router_pod("a"), router_pod("b")])), 1)
    leaving = shares(snapshot([router_pod("a"), router_pod("b", terminating=True)]), both)
    assert listed(leaving) == {"a": 500, "b": 500}
    assert listed(shares(snapshot([router_pod("a")]), both)) == {"a": 1000}


def test_while_a_url_has_not_said_who_it_is_nobody_counts_as_gone() -> None:
    of = a_fleet(routing={"routers": {"urls": [URL]}})
    known = index(shares(snapshot(of=of, routers={URL: state("edge", (7, 1))})), 1)
    silent = shares(snapshot([router_pod("a")], of=of), known)
    assert "a" not in listed(silent)


def test_after_the_index_was_deleted_everyone_starts_with_an_equal_part() -> None:
    pods = [router_pod("a"), router_pod("b")]
    routers = {"a": state("a", (6, 9)), "b": state("b", (6, 9))}
    assert listed(shares(snapshot(pods, routers=routers))) == {"a": 500, "b": 500}
