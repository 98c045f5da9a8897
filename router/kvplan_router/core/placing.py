"""Placing requests: dispatch, reservation and the queue put together. Pure.

In: a class, a key and a request; slots that got room; the time. Out: picks, waits and refusals, with their effect on
the books. Must not: match classes, read bodies or count arrivals. Source: 05-router §4; docs/contracts/dispatch.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Final

from kvplan_router.core.destination import Destination, hash64
from kvplan_router.core.dispatch import Asked, Dispatcher, Placement
from kvplan_router.core.ledger import reserve
from kvplan_router.core.request_id import HEADER, with_reservation, without_claim
from kvplan_router.core.settings import CoreSettings
from kvplan_router.core.subset import allowed_by
from kvplan_router.core.values import Outcome, Pick, Released, Request, Shed, Wait
from kvplan_router.core.view import ClassView, ServingHome, View, serving_home
from kvplan_router.core.waiting import Arrival, Waiter, Waiting

_NOTHING_SERVES: Final = Shed(503, 0, "no destination that may take this request is ready", Outcome.ERROR)
_NO_CLASS: Final = Shed(404, 0, "no request class takes this request")


class Placer:
    """Places requests and keeps those that wait."""

    def __init__(self, settings: CoreSettings, rng: Random) -> None:
        self._settings, self._rng = settings, rng
        self._dispatcher, self._waiting = Dispatcher(settings, rng), Waiting()
        self._roomy: dict[str, None] = {}  # slots that may have got room since the last release, in order
        self._view_is_new = False
        self._too_many = Shed(429, settings.retry_after_seconds, "no capacity for this request class at the moment")

    def __len__(self) -> int:
        """Requests that wait."""
        return len(self._waiting)

    @property
    def next_deadline(self) -> float | None:
        """When the next waiting request is too late, monotonic seconds; None while nobody waits."""
        return self._waiting.next_deadline

    def place(self, view: View, class_view: ClassView, key: int | None, request: Request) -> Pick | Shed | Wait:
        """Where an arrival goes. What the plan does not admit is refused, or goes wherever there is room at once."""
        if class_view is view.unmatched and view.rejects_unmatched:
            return _NO_CLASS
        admitted = class_view.thinning.admits(class_view.admit_milli)
        if not admitted and not class_view.overflows:
            return self._too_many
        asked = self._asked(view, class_view, key if admitted else None, request)
        placement = self._dispatcher.place(asked)
        if placement is None:
            return _NOTHING_SERVES
        request_id = without_claim(request.headers.get(HEADER, "")) or f"{self._rng.getrandbits(128):032x}"
        order, outcome, has_room = placement
        if has_room:
            return self._pick(asked, order, outcome, request_id, request.now)
        return self._wait(asked, placement, Arrival(key, request_id, request.now)) if admitted else self._too_many

    def got_room(self, slots: Iterable[str]) -> None:
        """These slots may have room for somebody who waits; remembered until the next release."""
        if self._waiting.lengths:
            self._roomy.update(dict.fromkeys(slots))

    def release(self, view: View, now: float) -> list[Released]:
        """Answers for those who waited: room now, or too late."""
        if not self._waiting:
            self._roomy.clear()
            return []
        released = [self._refused(waiter, self._too_many, now) for waiter in self._waiting.too_late(now)]
        released += [answer for waiter in self._strays(view) if (answer := self._again(view, waiter, now))]
        self._view_is_new = False
        while self._roomy:
            destination = view.serving.get(self._roomy.popitem()[0])
            while destination is not None and (waiter := self._waiting.next_for(destination)) is not None:
                released += self._turn(view, waiter, destination, now)
        return released

    def abandon(self, waiter: Waiter, now: float) -> bool:
        """A client left the queue. Idempotent: False where it waits no longer."""
        if not waiter.open:
            return False
        self._leave_queue(waiter, Outcome.ERROR, now)
        return True

    def follow(self, view: View) -> None:
        """Those who wait belong to the classes of a new view; :meth:`release` moves those whose slot is gone."""
        for waiter in self._waiting.all():
            waiter.class_view = view.by_name.get(waiter.class_view.name, view.unmatched)
        self._view_is_new = True
        self.got_room(view.serving)

    def _asked(self, view: View, class_view: ClassView, key: int | None, request: Request) -> Asked:
        serving, restricted = view.serving, False
        if request.subset is not None:
            serving = allowed_by(request.subset, serving.values())
            restricted = len(serving) < len(view.serving)
        home, session = None if key is None else _home(view, key, serving, restricted), None
        if home is not None and len(home.members) > 1:  # a single destination needs no session
            named = request.headers.get(self._settings.session_header)
            session = hash64(named) if named else None
        size = request.size
        return Asked(class_view, home, session, serving, restricted, size, class_view.need(size))

    def _pick(
        self, asked: Asked, order: Sequence[Destination], outcome: Outcome, request_id: str, since: float
    ) -> Pick:
        first = order[0]
        if len(order) == 1:
            order = self._dispatcher.and_another(first, asked)
        tokens = asked.tokens(first)
        ticket = reserve(first.account, tokens, asked.class_view.name, since, asked.size)
        addresses = tuple([d.address for d in order[: self._settings.destinations]])
        return Pick(addresses, {HEADER: with_reservation(request_id, tokens)}, outcome, ticket)

    def _wait(self, asked: Asked, placement: Placement, arrival: Arrival) -> Wait | Shed:
        class_view, first = asked.class_view, placement.order[0]
        hopeless = first.account.limit < asked.tokens(first)
        if hopeless or self._waiting.length(class_view.name) >= class_view.queue_length:
            return self._too_many
        deadline = arrival.since + class_view.deadline_seconds
        waiter = Waiter(arrival, asked, placement.order, deadline, roams=placement.outcome is Outcome.COLD)
        self._waiting.add(waiter, first)
        return Wait(waiter, deadline)

    def _waited(self, view: View, waiter: Waiter, order: Sequence[Destination], now: float) -> Released:
        """Place one that waited; the caller has checked that it fits."""
        self._leave_queue(waiter, Outcome.WAITED, now)
        others = [d for slot in waiter.others if (d := view.serving.get(slot)) is not None and d not in order]
        asked, arrival = _asked_again(view, waiter), waiter.arrival
        pick = self._pick(asked, [*order, *others], Outcome.WAITED, arrival.request_id, arrival.since)
        return Released(waiter, pick)

    def _turn(self, view: View, waiter: Waiter, destination: Destination, now: float) -> list[Released]:
        """The answer to the one whose turn it is; none where it waits on, for another slot."""
        if destination.account.fits(waiter.tokens(destination)):
            return [self._waited(view, waiter, [destination], now)]
        answer = self._again(view, waiter, now)
        return [] if answer is None else [answer]

    def _refused(self, waiter: Waiter, shed: Shed, now: float) -> Released:
        self._leave_queue(waiter, shed.outcome, now)
        return Released(waiter, shed)

    def _leave_queue(self, waiter: Waiter, outcome: Outcome, now: float) -> None:
        self._waiting.remove(waiter)
        waiter.class_view.meter.placed(outcome)
        waiter.class_view.meter.queued(max(0.0, now - waiter.arrival.since))
        self.got_room((waiter.account.slot,))  # it may have stood before others that fit

    def _strays(self, view: View) -> list[Waiter]:
        """Those who wait for a slot that takes no requests any more; only a new view makes some."""
        if not self._view_is_new:
            return []
        return [waiter for waiter in self._waiting.all() if waiter.account.slot not in view.serving]

    def _again(self, view: View, waiter: Waiter, now: float) -> Released | None:
        """Place one anew whose slot is gone or never has that much; None where it waits on, for another slot."""
        asked = _asked_again(view, waiter)
        placement = self._dispatcher.place(asked)
        if placement is None:
            return self._refused(waiter, _NOTHING_SERVES, now)
        if placement.has_room:
            return self._waited(view, waiter, placement.order, now)
        first = placement.order[0]
        if first.account.never_fits(asked.tokens(first)):
            return self._refused(waiter, self._too_many, now)
        self._waiting.retarget(waiter, placement.order)
        return None


def _asked_again(view: View, waiter: Waiter) -> Asked:
    """What a waiting request asks of the view in force."""
    key, before = waiter.arrival.key, waiter.asked
    serving = view.serving
    if before.restricted:
        serving = {slot: d for slot, d in serving.items() if slot in before.serving}
    home = None if key is None else _home(view, key, serving, before.restricted)
    class_view, size = waiter.class_view, before.size
    return Asked(class_view, home, before.session, serving, before.restricted, size, class_view.need(size))


def _home(view: View, key: int, serving: Mapping[str, Destination], restricted: bool) -> ServingHome | None:
    """What may be used of a key's home; None for the cold tail."""
    if not restricted:
        return view.home(key)
    home = view.table.lookup(key)
    return None if home is None else serving_home(home, serving)
