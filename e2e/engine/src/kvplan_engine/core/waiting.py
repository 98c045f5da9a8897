"""Requests that wait: in order of arrival, or of urgency; preempted ones first among equals. Pure."""

from bisect import insort
from collections.abc import Iterator

from kvplan_engine.core.request import Request


class WaitingQueue:
    """The waiting queue of one engine.

    Args:
        by_urgency: order by (priority, arrival) instead of by arrival.
    """

    def __init__(self, *, by_urgency: bool) -> None:
        self._by_urgency = by_urgency
        self._requests: list[Request] = []

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[Request]:
        return iter(self._requests)

    @property
    def head(self) -> Request:
        """The next request to admit."""
        return self._requests[0]

    def append(self, request: Request) -> None:
        """Queue a newcomer."""
        if self._by_urgency:
            insort(self._requests, request, key=lambda waiting: waiting.urgency)
        else:
            self._requests.append(request)

    def put_back(self, request: Request) -> None:
        """Queue a preempted request: at the head, or at its urgency."""
        if self._by_urgency:
            self.append(request)
        else:
            self._requests.insert(0, request)

    def pop(self) -> Request:
        """Take the head."""
        return self._requests.pop(0)

    def discard(self, request: Request) -> None:
        """Forget a request, if it is here."""
        if request in self._requests:
            self._requests.remove(request)
