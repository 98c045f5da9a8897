"""Requests that reserve for their own prompt, and budgets that follow engines, where that is rare and legal."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.model.snapshot import EngineState, Quality, Snapshot
from kvplan_operator.plan.hot_values import hot_values, with_hot_values
from kvplan_operator.plan.planned import Planned
from kvplan_router.core.decide import Router
from kvplan_router.core.ledger import reserve
from kvplan_router.core.prompt_sizes import ENOUGH
from kvplan_router.core.slot_account import SlotAccount
from kvplan_router.core.values import Outcome, Pick, Request, Shed, Usage, Wait
from tests.planning import demo
from tests.routing import Shelf, engine, router_pod, running, said, snapshot, state
from tests.routing_plans import class_plan, group, plan_of
from tests.unit.router_world import document, home, picked, request, request_class, router, slot, table

QUEUE = {"maxLength": 5, "deadlineMilliseconds": 20_000}


def sized(size: int, tenant: str = "t", now: float = 0.0, **headers: Any) -> Request:
    """A request of so many bytes; 0: it does not say."""
    return request(tenant, now=now, content_length=str(size or ""), **headers)


def chat(**fields: Any) -> dict[str, Any]:
    """A class with a queue; 80 of its 100 tokens are prompt."""
    planned: dict[str, Any] = {"reservedPromptTokens": 80, "cachedPrefixTokens": 0, "queue": QUEUE}
    return request_class(**(planned | fields))


def learned(made: Router, size: int, prompt: int) -> None:
    """Let a router see answers to requests that the gateway placed, as in observe mode: no slot is touched."""
    for _ in range(ENOUGH):
        made.finish(reserve(SlotAccount(""), 0, "chat", 0.0, size), Usage(prompt, 5))


# Who waits


def test_a_request_whose_class_goes_while_it_waits_is_answered_and_the_others_too() -> None:
    head = document(classes=[chat()], slots=[slot("a-0", budgetTokens=100)])
    made = router(head)
    running_one = picked(made.decide(sized(0))).ticket
    waiting = made.decide(sized(0))
    assert isinstance(waiting, Wait)
    made.install(*table(head | {"generation": 2, "classes": [chat(name="renamed")]}))
    made.finish(running_one)
    (released,) = made.release(0.5)
    assert released.ticket is waiting.ticket
    assert made.state().waiting == 0


def test_a_class_that_goes_while_its_request_waits_takes_no_tokens_of_other_classes_with_it() -> None:
    going = chat(name="going", match={"headers": [{"name": "x-going", "exact": "1"}]})
    head = document(classes=[going, chat()], slots=[slot("a-0", budgetTokens=200)])
    made = router(head)
    full = [picked(made.decide(sized(0))).ticket for _ in range(2)]
    assert all(isinstance(made.decide(each), Wait) for each in (sized(0), sized(0, x_going="1")))
    made.install(*table(head | {"generation": 2, "classes": [chat()]}))
    for ticket in full:
        made.finish(ticket)
    with suppress(KeyError):
        for released in made.release(1.0):
            made.finish(picked(released.decision).ticket)
    made.release(100.0)
    assert (made.state().reserved, made.state().waiting) == ({"a-0": 0}, 0)


def test_a_request_that_grows_too_large_for_its_slot_while_it_waits_is_refused_when_that_is_known() -> None:
    made = router(document(classes=[chat()], slots=[slot("a-0", budgetTokens=90)]))
    learned(made, size=400, prompt=20)
    first = picked(made.decide(sized(400))).ticket
    waiting = made.decide(sized(400))
    assert isinstance(waiting, Wait)
    made.finish(first, Usage(79, 5))
    (released,) = made.release(1.0)
    assert (released.ticket, isinstance(released.decision, Shed)) == (waiting.ticket, True)


def test_one_long_answer_does_not_make_a_waiting_request_hold_up_an_empty_slot() -> None:
    made = router(document(classes=[chat()], slots=[slot("a-0", budgetTokens=90)]))
    learned(made, size=400, prompt=20)
    learned(made, size=100, prompt=5)
    first = picked(made.decide(sized(400))).ticket
    made.decide(sized(400))
    made.finish(first, Usage(79, 5))
    made.release(1.0)
    assert made.state().reserved == {"a-0": 0}
    assert isinstance(made.decide(sized(100, now=2.0)), Pick), "the engine is empty, and 36 of 90 tokens are asked for"


def test_a_budget_that_falls_below_what_one_waits_for_does_not_shut_the_slot_for_others() -> None:
    big = chat(
        name="big",
        match={"headers": [{"name": "x-big", "exact": "1"}]},
        routes=[{"configuration": "a", "shareMilli": 1000, "reservationTokens": 900}],
    )
    head = document(classes=[big, chat()], slots=[slot("a-0", budgetTokens=1_000)])
    made = router(head)
    small = [picked(made.decide(sized(0))).ticket for _ in range(2)]
    assert isinstance(made.decide(sized(0, x_big="1")), Wait)
    made.install(*table(head | {"generation": 2, "slots": [slot("a-0", budgetTokens=800)]}))
    for ticket in small:
        made.finish(ticket)
    made.release(1.0)
    assert made.state().reserved == {"a-0": 0}
    assert isinstance(made.decide(sized(0, now=2.0)), Pick), "the engine is empty, and 100 of 800 tokens are asked for"


def test_a_waiting_request_that_fits_by_what_was_learned_elsewhere_goes_at_once() -> None:
    slots = [slot("a-0", budgetTokens=160), slot("a-1", budgetTokens=10_000)]
    made = router(document(classes=[chat()], slots=slots), {"t": home("a-0"), "u": home("a-1")})
    picked(made.decide(sized(0, "t")))  # an answer that takes minutes: 60 of 160 tokens are left
    waiting = made.decide(sized(400, "t"))
    assert isinstance(waiting, Wait)
    released = []
    for _ in range(ENOUGH):
        made.finish(picked(made.decide(sized(400, "u"))).ticket, Usage(20, 5), 0.5)
        released += made.release(0.5)
    assert [r.ticket for r in released] == [waiting.ticket], "it needs 52 tokens by now"


def test_who_waits_is_served_once_the_budget_is_back() -> None:
    head = document(classes=[chat()], slots=[slot("a-0", budgetTokens=100)])
    made = router(head)
    first = picked(made.decide(sized(0))).ticket
    assert isinstance(made.decide(sized(0)), Wait)
    made.install(*table(head | {"generation": 2, "slots": [slot("a-0", budgetTokens=0)]}))
    made.finish(first)
    assert made.release(1.0) == []
    made.install(*table(head | {"generation": 3}))
    (released,) = made.release(2.0)
    assert picked(released.decision).outcome is Outcome.WAITED


# What is reserved


def test_while_routes_of_two_plans_mix_a_request_still_reserves_its_own_prompt() -> None:
    routes = [{"configuration": "a", "shareMilli": 1000, "reservationTokens": 1_008}]
    classes = [chat(routes=routes, reservedPromptTokens=7_000)]
    made = router(document(classes=classes, slots=[slot("a-0", budgetTokens=100_000)]))
    learned(made, size=3_000, prompt=600)
    assert picked(made.decide(sized(3_000))).ticket.tokens >= 600


def test_an_index_never_tells_more_prompt_than_its_reservations_have_room_for() -> None:
    """A rollout half done: the plan sends chat to tp2 with long prompts, and only tp1 of the plan before serves."""
    shelf, before = Shelf(), demo()
    shelf.round(look(running()), before)
    shelf.round(look(running()), moved_to_tp2(before, tokens=8_000, prompt=7_000))
    found = shelf.found().document
    assert found is not None
    chat_entry = next(entry for entry in found["classes"] if entry["name"] == "chat")
    assert [route["configuration"] for route in chat_entry["routes"]] == ["tp1"]
    least = min(route["reservationTokens"] + chat_entry["cachedPrefixTokens"] for route in chat_entry["routes"])
    assert chat_entry["reservedPromptTokens"] <= least


def moved_to_tp2(planned: Planned, tokens: int, prompt: int) -> Planned:
    """The same plan with class chat on tp2, which no pod serves yet, and with longer prompts."""
    classes = tuple(
        c.model_copy(
            update={
                "reservation_tokens": tokens,
                "reserved_prompt_tokens": prompt,
                "prefix_cached_on": (),
                "cached_prefix_tokens": 0,
                "routes": (c.routes[0].model_copy(update={"configuration": "tp2", "reservation_tokens": tokens}),),
            }
        )
        if c.name == "chat"
        else c
        for c in planned.plan.spec.classes
    )
    tp1 = planned.plan.spec.groups[0]
    groups = (tp1.model_copy(update={"replicas": 1, "placements": ()}),
              tp1.model_copy(update={"configuration": "tp2", "replicas": 1, "placements": ()}))  # fmt: skip
    spec = planned.plan.spec.model_copy(update={"classes": classes, "groups": groups})
    return replace(planned, plan=planned.plan.model_copy(update={"spec": spec}))


def test_a_retuned_plan_tells_the_prefix_that_its_reservations_leave_out() -> None:
    """Values that change without a restart: the shared prefix is now cached, so R̃ leaves 800 tokens out."""
    plain = plan_of((group(),), (class_plan(tokens=1_104, reservedPromptTokens=1_000),))
    caching = plan_of((group(),), (cached_plan(),))
    tuned: RoutingPlan = with_hot_values(plain, hot_values(caching))
    assert tuned.spec.classes[0].routes[0].reservation_tokens == 304
    assert tuned.spec.classes[0].cached_prefix_tokens == 800


def cached_plan() -> dict[str, Any]:
    """1104 tokens, of which 800 are a cached prefix."""
    made = class_plan(tokens=1_104, reservedPromptTokens=1_000, prefixCachedOn=["tp1"], cachedPrefixTokens=800)
    made["routes"][0]["reservationTokens"] = 304
    return made


@pytest.mark.parametrize("length", ["0", "00", "400, 400", "400,400", "+400", " 400", "4_00", "0x190", "9" * 400])
def test_no_form_of_a_length_makes_a_reservation_smaller_than_answers_taught(length: str) -> None:
    made = router(document(classes=[chat()], slots=[slot("a-0", budgetTokens=100_000)]))
    learned(made, size=400, prompt=40)
    assert picked(made.decide(request("t", content_length=length))).ticket.tokens == 100


# Budgets that follow engines


def look(pods: list[dict[str, Any]], order: tuple[int, int] = (0, 0), **parts: Any) -> Snapshot:
    """Some pods and one router that reports an index."""
    return snapshot([*pods, router_pod("router-a")], routers={"router-a": state("router-a", order)}, **parts)


def budgets(shelf: Shelf) -> dict[str, int]:
    """Q by slot, as published."""
    return {slot.name: slot.budget_tokens for slot in shelf.found().slots}


@pytest.mark.parametrize(
    "later",
    [
        {},
        {"uid-tp1-a": said(None, Quality.NO_DATA)},
        {"uid-tp1-a": said(EngineState(None, 0, 0))},
    ],
    ids=["after a start of the operator, before engines were asked", "it does not answer", "it names no blocks"],
)
def test_a_pod_that_was_heard_to_hold_less_keeps_its_smaller_budget_while_it_is_silent(later: dict[str, Any]) -> None:
    shelf, planned = Shelf(), demo().plan.spec.groups[0]
    short = EngineState(planned.kv_capacity_tokens - 16_000, 0, 0)
    shelf.round(look(running(), engines={"uid-tp1-a": said(short)}), demo())
    assert budgets(shelf)["tp1-0"] == planned.budget_tokens - 16_000
    decision = shelf.round(look(running(), shelf.found().order, engines=later), demo())
    assert budgets(shelf)["tp1-0"] == planned.budget_tokens - 16_000
    assert decision.publication is None


def test_an_engine_that_tells_the_same_again_has_nothing_written() -> None:
    shelf, short = Shelf(), {"uid-tp1-a": said(EngineState(48_000, 0, 0))}
    shelf.round(look(running(), engines=short), demo())
    shelf.round(look(running(), shelf.found().order, engines=short), demo())
    stale = {"uid-tp1-a": said(EngineState(48_000, 9, 3), Quality.STALE)}
    assert shelf.round(look(running(), shelf.found().order, engines=stale), demo()).publication is None


def test_another_pod_in_the_same_slot_is_not_held_to_what_the_one_before_it_had() -> None:
    shelf, planned = Shelf(), demo().plan.spec.groups[0]
    short = {"uid-tp1-a": said(EngineState(planned.kv_capacity_tokens - 16_000, 0, 0))}
    shelf.round(look(running(), engines=short), demo())
    anew = [engine("tp1-z", "tp1", ip="10.0.0.9"), *running()[1:]]
    shelf.round(look(anew, shelf.found().order), demo())
    assert budgets(shelf)["tp1-0"] == planned.budget_tokens
