"""Requests that wait for reserved tokens: bounded, with a deadline, and shared fairly among the classes. Pure state.

In: requests without room, slots that got room, the time. Out: who is next, who is too late. Each request waits for one
slot. There the order is weighted fair queueing (Demers, Keshav, Shenker 1989): a request's tag is its tokens
over its class's planned share on that configuration, added to the class's last tag or to the slot's virtual time,
whichever is later. The first in that order is never passed on its slot, however large it is, so nobody starves:
the tags of others grow with what they get. A request of the cold tail may also be taken by another slot that has
room and nobody of its own waiting. Must not: reserve, or know why a slot got room. Source: 05-router §4.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

from kvplan_router.core.destination import Destination
from kvplan_router.core.dispatch import Asked
from kvplan_router.core.slot_account import SlotAccount
from kvplan_router.core.view import ClassView


class Arrival(NamedTuple):
    """What is kept of a request while it waits; no header but its id, no body.

    Attributes:
        key: 64-bit hash; None for the cold tail.
        request_id: of the client, without a reservation.
        since: monotonic seconds.
    """

    key: int | None
    request_id: str
    since: float


class Waiter:
    """One waiting request.

    Attributes:
        arrival: what is kept of it.
        asked: what dispatch knew of it when it came.
        class_view: its class in the view in force.
        queue: name of the class in whose queue it stands; stays where the class is renamed or goes.
        account: of the slot it waits for.
        others: slots to name after that one.
        roams: whether another slot may take it.
        deadline: monotonic seconds.
        open: whether it still waits.
    """

    __slots__ = ("account", "arrival", "asked", "class_view", "deadline", "open", "others", "queue", "roams")

    def __init__(
        self,
        arrival: Arrival,
        asked: Asked,
        order: Sequence[Destination],
        deadline: float,
        *,
        roams: bool,
    ) -> None:
        self.arrival, self.asked, self.deadline, self.roams = arrival, asked, deadline, roams
        self.class_view: ClassView = asked.class_view
        self.queue = asked.class_view.name
        self.open = True
        self.wait_for(order)

    def tokens(self, destination: Destination) -> int:
        """What it would reserve there now."""
        return self.class_view.tokens(destination, self.class_view.need(self.asked.size))

    def wait_for(self, order: Sequence[Destination]) -> None:
        """Wait for the first of these."""
        self.account: SlotAccount = order[0].account
        self.others = tuple(destination.slot for destination in order[1:])


class _SlotQueue:
    """Who waits for one slot, in order of tags."""

    __slots__ = ("_heap", "_last_tag", "_virtual")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Waiter]] = []
        self._last_tag: dict[str, float] = {}
        self._virtual = 0.0

    def add(self, number: int, waiter: Waiter, destination: Destination) -> None:
        name = waiter.class_view.name
        share = waiter.class_view.share_on.get(destination.configuration, 0) or 1
        begin = max(self._virtual, self._last_tag.get(name, 0.0))
        tag = begin + max(1, waiter.tokens(destination)) / share
        self._last_tag[name] = tag
        heappush(self._heap, (tag, number, waiter))

    def first(self) -> Waiter | None:
        """The next in order; the virtual time follows those that are gone."""
        heap = self._heap
        while heap and not heap[0][2].open:
            self._virtual = max(self._virtual, heappop(heap)[0])
        return heap[0][2] if heap else None


class Waiting:
    """All queues of this process.

    Attributes:
        lengths: requests that wait, by class; empty while nobody does.
    """

    def __init__(self) -> None:
        self._numbers = count()
        self._queues: dict[str, _SlotQueue] = {}
        self._roaming: dict[str, deque[Waiter]] = {}
        self._deadlines: list[tuple[float, int, Waiter]] = []
        self.lengths: dict[str, int] = {}

    def __len__(self) -> int:
        return sum(self.lengths.values())

    def length(self, class_name: str) -> int:
        """Requests of one class that wait."""
        return self.lengths.get(class_name, 0)

    @property
    def next_deadline(self) -> float | None:
        """When the next request is too late, monotonic seconds; None where nobody waits."""
        deadlines = self._deadlines
        while deadlines and not deadlines[0][2].open:
            heappop(deadlines)
        return deadlines[0][0] if deadlines else None

    def add(self, waiter: Waiter, destination: Destination) -> None:
        """Let a request wait for a destination."""
        name, number = waiter.queue, next(self._numbers)
        self._join(number, waiter, destination)
        heappush(self._deadlines, (waiter.deadline, number, waiter))
        if waiter.roams:
            self._roaming.setdefault(name, deque()).append(waiter)
        self.lengths[name] = self.length(name) + 1

    def remove(self, waiter: Waiter) -> bool:
        """A request waits no longer. Idempotent: False where it did not wait."""
        if not waiter.open:
            return False
        waiter.open = False
        self._leave(waiter.account)
        name = waiter.queue
        self.lengths[name] -= 1
        if not self.lengths[name]:
            del self.lengths[name]
            self._roaming.pop(name, None)
        return True

    def retarget(self, waiter: Waiter, order: Sequence[Destination]) -> None:
        """Let a request wait for another destination; its deadline and its turn among the roaming stay."""
        self._leave(waiter.account)
        waiter.wait_for(order)
        self._join(next(self._numbers), waiter, order[0])

    def next_for(self, destination: Destination) -> Waiter | None:
        """Whose turn it is: who may reserve there now, or never may, and so must not stand before others.

        None where nobody waits for it, or where the first one does not fit yet.
        """
        queue = self._queues.get(destination.slot)
        first = queue.first() if queue else None
        if first is None:
            return self._roamer(destination)
        tokens, account = first.tokens(destination), destination.account
        return first if account.fits(tokens) or account.never_fits(tokens) else None

    def too_late(self, now: float) -> Iterator[Waiter]:
        """Those whose deadline has come, the earliest first; the caller removes each."""
        while (deadline := self.next_deadline) is not None and deadline <= now:
            yield self._deadlines[0][2]

    def all(self) -> list[Waiter]:
        """Everybody, in order of arrival in the queues."""
        return [waiter for _, _, waiter in sorted(self._deadlines, key=lambda entry: entry[1]) if waiter.open]

    def _join(self, number: int, waiter: Waiter, destination: Destination) -> None:
        self._queues.setdefault(destination.slot, _SlotQueue()).add(number, waiter, destination)
        waiter.account.waiting += 1

    def _leave(self, account: SlotAccount) -> None:
        account.waiting -= 1
        if not account.waiting:
            del self._queues[account.slot]  # virtual time starts again with the next one who waits

    def _roamer(self, destination: Destination) -> Waiter | None:
        """The longest waiting of the classes that may use the destination and fit there."""
        heads = (head for queue in self._roaming.values() if (head := _first_open(queue)) is not None)
        able = [head for head in heads if _can_take(destination, head)]
        return min(able, key=lambda waiter: waiter.arrival.since, default=None)


def _first_open(queue: deque[Waiter]) -> Waiter | None:
    while queue and not queue[0].open:
        queue.popleft()
    return queue[0] if queue else None


def _can_take(destination: Destination, waiter: Waiter) -> bool:
    return waiter.class_view.may_use(destination) and destination.account.fits(waiter.tokens(destination))
