"""One request's way through ext_proc: messages in, replies out. The specification of every transport.

In: the gateway's messages in order, and a :class:`Decider`. Out: the replies to send, in order. Must not do I/O,
read a clock of its own or keep more of a body than the cap. Source: 05-router §2 and §3.

| request body mode | reply to the headers | where the destinations are set |
|---|---|---|
| NONE, or no body follows | at once | header reply |
| BUFFERED | at once; empty if the key is in the body | header reply, or body reply |
| STREAMED | at once, from the headers alone, unless the gateway sends the body without waiting | header reply |
| FULL_DUPLEX | at once, or after the body that the key needs | header reply; pieces are echoed |
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from kvplan_router.core.values import Decision, NeedBody, PassThrough, Pick, Request, Shed, Ticket, Wait
from kvplan_router.transport.interface import Decider
from kvplan_router.transport.messages import (
    Body,
    BodyMode,
    Continue,
    Echo,
    End,
    Hold,
    InFlightMode,
    Message,
    Phase,
    Refuse,
    Reply,
    RequestHeaders,
    ResponseHeaders,
    Route,
    Trailers,
)
from kvplan_router.transport.usage import UsageTail

NO_BODY = b""
"""Told to the decision when there is no body, or none that may be waited for."""


@dataclass(frozen=True, slots=True)
class ExchangeRules:
    """What is the same for all requests of a process.

    Attributes:
        in_flight: how long a request counts.
        body_bytes_max: a longer body is passed on unread, and the key is looked for in the headers.
        sampled: drawn once per request: whether to look at a response that would pass unseen.
    """

    in_flight: InFlightMode = InFlightMode.TRAILERS
    body_bytes_max: int = 4 * 1024 * 1024
    sampled: Callable[[], bool] = lambda: False


class Exchange:
    """The state of one ext_proc stream."""

    __slots__ = (
        "_answering", "_at", "_begun", "_clock", "_decider", "_ended", "_head", "_held", "_held_bytes", "_over",
        "_routed", "_rules", "_ticket", "_usage", "_wait", "_wants_body",
    )  # fmt: skip

    def __init__(self, decider: Decider, clock: Callable[[], float], rules: ExchangeRules) -> None:
        self._decider, self._clock, self._rules = decider, clock, rules
        self._head = RequestHeaders({})
        self._answering = Phase.REQUEST_HEADERS
        self._held: list[Body] = []
        self._held_bytes = 0
        self._begun = self._wants_body = self._ended = self._routed = self._over = False
        self._wait: Wait | None = None
        self._ticket: Ticket | None = None
        self._at = ""
        self._usage: UsageTail | None = None

    def receive(self, message: Message) -> list[Reply]:
        """Replies to the next message, in order."""
        match message:
            case RequestHeaders():
                return self._request_headers(message)
            case Body(phase=Phase.REQUEST_BODY):
                return self._request_body(message)
            case Body():
                return self._response_body(message)
            case ResponseHeaders():
                return self._response_headers(message)
            case Trailers(phase=Phase.REQUEST_TRAILERS):
                return self._request_trailers()
            case Trailers():
                return self._response_trailers(message)

    def resume(self, decision: Pick | Shed) -> list[Reply]:
        """Replies once a :class:`Hold` is over."""
        self._wait = None
        return self._answer(decision)

    @property
    def may_end(self) -> bool:
        """Whether the stream may be closed with OK now and the request goes on unharmed."""
        full_duplex = BodyMode.FULL_DUPLEX in {self._head.modes.request, self._head.modes.response}
        return self._routed and self._usage is None and not full_duplex

    def close(self) -> None:
        """The stream is over; whoever holds tokens returns them. Later calls do nothing."""
        if self._over:
            return
        self._over = True
        if self._wait is not None:
            self._decider.abandon(self._wait.ticket, self._clock())
        if self._ticket is not None:
            self._decider.finish(self._ticket, self._usage.result() if self._usage else None, self._clock())

    def _request_headers(self, head: RequestHeaders) -> list[Reply]:
        if self._begun:
            return [Continue(Phase.REQUEST_HEADERS)]  # a stream is one request, whatever a gateway says
        self._begun = True
        self._head, self._ended = head, head.end_of_stream
        decision = self._decide(NO_BODY if head.end_of_stream else None)
        if not isinstance(decision, NeedBody):
            return self._answer(decision)
        if head.modes.request is BodyMode.BUFFERED:
            self._wants_body, self._answering = True, Phase.REQUEST_BODY
            return [Continue(Phase.REQUEST_HEADERS)]
        if self._body_comes_unasked():
            self._wants_body = True
            return []
        return self._answer(self._decide(NO_BODY))

    def _body_comes_unasked(self) -> bool:
        modes = self._head.modes
        return modes.request is BodyMode.FULL_DUPLEX or (modes.request is BodyMode.STREAMED and modes.body_before_reply)

    def _request_body(self, body: Body) -> list[Reply]:
        self._ended = self._ended or body.end_of_stream
        if not self._wants_body:
            return [self._passed(body), *self._farewell()]
        self._held.append(body)
        self._held_bytes += len(body.data)
        whole = body.end_of_stream or self._head.modes.request is BodyMode.BUFFERED
        if not whole and self._held_bytes <= self._rules.body_bytes_max:
            return []
        return self._decide_on_body()

    def _decide_on_body(self) -> list[Reply]:
        self._wants_body = False
        readable = self._held_bytes <= self._rules.body_bytes_max
        body = b"".join(piece.data for piece in self._held) if readable else NO_BODY
        if self._answering is Phase.REQUEST_BODY:
            self._held.clear()  # the one reply answers the buffered body too
        return self._answer(self._decide(body))

    def _request_trailers(self) -> list[Reply]:
        self._ended = True
        replies = self._decide_on_body() if self._wants_body else []
        return [*replies, Continue(Phase.REQUEST_TRAILERS), *self._farewell()]

    def _decide(self, body: bytes | None) -> Decision:
        return self._decider.decide(Request(self._head.headers, self._clock(), body, self._head.subset))

    def _answer(self, decision: Decision) -> list[Reply]:
        match decision:
            case Pick():
                self._ticket = decision.ticket
                return self._go(decision.destinations, decision.headers)
            case PassThrough():
                self._ticket = decision.ticket
                return self._go((), decision.headers)
            case Wait():
                self._wait = decision
                return [Hold(decision)]
            case Shed():
                self._held.clear()
                return [Refuse(decision.status, decision.retry_after, decision.reason)]
        raise TypeError(f"a decision on a whole request cannot be {decision!r:.80}")

    def _go(self, destinations: tuple[str, ...], headers: Mapping[str, str]) -> list[Reply]:
        self._routed = True
        self._at = destinations[0] if destinations else ""
        watch = self._watches_response()
        self._usage = UsageTail() if watch or self._head.modes.response is not BodyMode.NONE else None
        return [Route(self._answering, destinations, headers, watch), *self._released(), *self._farewell()]

    def _watches_response(self) -> bool:
        """Whether this response, which would pass unseen, is one of the sample."""
        unseen = self._head.modes.response is BodyMode.NONE and self._answering is Phase.REQUEST_HEADERS
        return unseen and self._rules.in_flight is InFlightMode.TRAILERS and self._rules.sampled()

    def _released(self) -> Iterator[Reply]:
        """The pieces of the body that waited for the decision."""
        held, self._held = self._held, []
        yield from map(self._passed, held)

    def _passed(self, body: Body) -> Reply:
        modes = self._head.modes
        mode = modes.request if body.phase is Phase.REQUEST_BODY else modes.response
        return Echo(body) if mode is BodyMode.FULL_DUPLEX else Continue(body.phase)

    def _farewell(self) -> list[Reply]:
        """End the stream once the request is through, where the answer is not waited for."""
        early = self._rules.in_flight is InFlightMode.EARLY_CLOSE
        through = self._ended or self._head.modes.request is BodyMode.NONE
        return [End()] if early and through and self._routed else []

    def _response_headers(self, head: ResponseHeaders) -> list[Reply]:
        self._told(head.served)
        return [Continue(Phase.RESPONSE_HEADERS)]

    def _response_body(self, body: Body) -> list[Reply]:
        if self._usage is not None:
            self._usage.feed(body.data)
        return [self._passed(body)]

    def _response_trailers(self, trailers: Trailers) -> list[Reply]:
        self._told(trailers.served)
        return [Continue(Phase.RESPONSE_TRAILERS)]

    def _told(self, served: str | None) -> None:
        """Pass on who serves, where that is news."""
        if served is not None and self._ticket is not None and served != self._at:
            self._at = served
            self._decider.served(self._ticket, served)
