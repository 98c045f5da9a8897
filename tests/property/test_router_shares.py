"""Budget shares under any interleaving: what router processes use of one slot never adds up to more than all of it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvplan_operator.model.snapshot import RouterState
from kvplan_operator.route.acknowledge import RouterProcess
from kvplan_operator.route.published import Published
from kvplan_operator.route.share_round import share_round
from kvplan_operator.route.shares import FULL_SHARE, limit_tokens, owners
from kvplan_operator.route.slots import PublishedSlot, SlotState

EPOCH = 7
BUDGETS = {"tp1-0": 1_000, "tp2-0": 1_000, "tp4-0": 1_000}
LARGEST = {"tp1": 600, "tp2": 450, "tp4": 10}
"""One process can own tp1-0, two can share tp2-0, and tp4-0 has room for everyone."""
NAMES = ("a", "b", "c")

Document = dict[str, Any]


@dataclass
class Process:
    """A router process: the index it uses, and what it has reserved."""

    document: Document | None = None
    reserved: dict[str, int] = field(default_factory=dict)

    def share(self, slot: str, name: str) -> int:
        entry = next((e for e in (self.document or {"slots": []})["slots"] if e["slot"] == slot), None)
        if entry is None or self.document is None:
            return 0
        shares = {r["identity"]: r["shareMilli"] for r in entry.get("routers", self.document["routers"])}
        return int(shares.get(name, 0))

    def state(self, name: str) -> RouterState:
        generation = self.document["generation"] if self.document else 0
        epoch = EPOCH if self.document else 0
        return RouterState(name, "plan", epoch, generation, "", {}, dict(self.reserved))


class World:
    """Indexes as published, processes as they run, reports as they were heard."""

    def __init__(self) -> None:
        self.published = Published("uid", "1", EPOCH)
        self.indexes: list[Document] = []
        self.processes: dict[str, Process] = {}
        self.heard: dict[str, RouterState] = {}
        self.leaving: set[str] = set()
        self.slots = set(BUDGETS)

    def act(self, action: str, *given_to: str) -> None:
        getattr(self, action)(*given_to)
        for slot, budget in BUDGETS.items():
            assert sum(process.share(slot, name) for name, process in self.processes.items()) <= FULL_SHARE
            assert sum(process.reserved.get(slot, 0) for process in self.processes.values()) <= budget

    def start(self, name: str) -> None:
        """A pod comes, or its process is restarted: it reads the newest index."""
        self.processes[name] = Process(self.indexes[-1] if self.indexes else None)

    def stop(self, name: str) -> None:
        self.processes.pop(name, None)
        self.heard.pop(name, None)
        self.leaving.discard(name)

    def leave(self, name: str) -> None:
        """Told to go, and still running."""
        if name in self.processes:
            self.leaving.add(name)

    def read(self, name: str) -> None:
        """The next index that it has not seen."""
        process = self.processes.get(name)
        if process is not None:
            seen = process.document["generation"] if process.document else 0
            process.document = next((d for d in self.indexes if d["generation"] > seen), process.document)

    def reserve(self, name: str, slot: str) -> None:
        """Requests, as many as the share has room for, if there is an engine."""
        process = self.processes.get(name)
        if process is not None and slot in self.slots:
            held = process.reserved.get(slot, 0)
            process.reserved[slot] = max(held, limit_tokens(BUDGETS[slot], process.share(slot, name)))

    def finish(self, name: str, slot: str) -> None:
        if name in self.processes:
            self.processes[name].reserved[slot] = 0

    def hear(self, name: str) -> None:
        if name in self.processes:
            self.heard[name] = self.processes[name].state(name)

    def resize(self, slot: str) -> None:
        """A slot goes, with its engine and every request on it, or comes back with a new engine."""
        self.slots ^= {slot}
        for process in self.processes.values():
            process.reserved.pop(slot, None)

    def tick(self) -> None:
        """The operator, with nothing but what is published and was heard; a new leader each time."""
        routers = [
            RouterProcess(n, n, live=True, leaving=n in self.leaving, state=self.heard.get(n))
            for n in sorted(self.processes)
        ]
        generation = self.published.generation + 1
        slots = [PublishedSlot(s, s[:3], SlotState.SERVING, BUDGETS[s]) for s in sorted(self.slots)]
        made = share_round(self.published, routers, slots, LARGEST, generation)
        document: Document = {
            "generation": generation,
            "routers": made.routers,
            "slots": [
                s.to_wire() | ({"routers": made.by_slot[s.name]} if s.name in made.by_slot else {}) for s in slots
            ],
        }
        self.indexes.append(document)
        self.published = Published("uid", "1", EPOCH, generation, document, held=made.held)

    def settle(self) -> None:
        """Everyone reads, finishes and reports until nothing moves."""
        for _ in range(6):
            for name in list(self.processes):
                self.processes[name].document = self.indexes[-1] if self.indexes else None
                for slot in BUDGETS:
                    self.finish(name, slot)
                self.hear(name)
            self.tick()
        for name in self.processes:
            self.processes[name].document = self.indexes[-1]


NAME, SLOT = st.sampled_from(NAMES), st.sampled_from(sorted(BUDGETS))
ACTIONS = (
    *[
        st.tuples(st.just(action), NAME)
        for action in ("start", "start", "read", "read", "read", "hear", "hear", "hear")
    ],
    *[st.tuples(st.just("tick"))] * 3,
    *[st.tuples(st.just("reserve"), NAME, SLOT)] * 2,
    st.tuples(st.just("finish"), NAME, SLOT),
    st.tuples(st.sampled_from(("stop", "leave")), NAME),
    st.tuples(st.just("resize"), SLOT),
)
STEPS = st.lists(st.one_of(ACTIONS), min_size=40, max_size=150)


def played(steps: Iterable[tuple[str, ...]]) -> World:
    world = World()
    for action, *given_to in steps:
        world.act(action, *given_to)
    return world


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_shares_in_use_and_tokens_reserved_never_pass_the_budget(steps: list[tuple[str, ...]]) -> None:
    played(steps)


HARD: dict[str, tuple[tuple[str, ...], ...]] = {
    "an owner has the smaller share and still more reserved": (
        ("start", "a"), ("tick",), ("read", "a"), ("reserve", "a", "tp4-0"), ("start", "b"), ("tick",),
        ("read", "a"), ("hear", "a"), ("tick",), ("read", "b"), ("read", "b"), ("reserve", "b", "tp4-0"),
    ),
    "an owner never read the smaller share": (
        ("start", "a"), ("tick",), ("read", "a"), ("hear", "a"), ("start", "b"), ("tick",), ("tick",), ("start", "b"),
    ),
    "a slot goes and comes back while one process uses an old index": (
        ("start", "c"), ("start", "b"), ("tick",), ("start", "b"), ("leave", "b"), ("resize", "tp1-0"), ("tick",),
        ("resize", "tp1-0"), ("tick",), ("start", "c"),
    ),
    "a name is used again after a restart": (
        ("start", "a"), ("tick",), ("read", "a"), ("hear", "a"), ("start", "b"), ("tick",), ("start", "a"),
        ("tick",), ("read", "b"), ("tick",), ("read", "b"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("steps", HARD.values(), ids=HARD.keys())
def test_the_budget_holds_when(steps: tuple[tuple[str, ...], ...]) -> None:
    played(steps)


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_once_everyone_has_answered_the_owners_of_each_slot_have_equal_shares(
    steps: list[tuple[str, ...]],
) -> None:
    world = played(steps)
    for name in tuple(world.leaving):
        world.stop(name)
    world.settle()
    for slot in world.slots:
        wanted = owners(slot, list(world.processes), BUDGETS[slot], LARGEST[slot[:3]])
        shares = {name: process.share(slot, name) for name, process in world.processes.items()}
        assert {name: share for name, share in shares.items() if share} == {
            name: FULL_SHARE // len(wanted) for name in wanted
        }
    assert world.published.held == {}


@given(st.sets(st.text("abcdef", min_size=1), min_size=1), st.integers(0, 10_000), st.integers(0, 4_000))
def test_a_share_holds_the_largest_reservation_unless_one_process_owns_the_slot(
    names: set[str], budget: int, largest: int
) -> None:
    found = owners("tp1-0", names, budget, largest)
    assert set(found) <= names
    assert len(found) == 1 or limit_tokens(budget, FULL_SHARE // len(found)) >= largest
