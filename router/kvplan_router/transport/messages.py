"""What a gateway says and what it is told, as plain values.

The only vocabulary that :mod:`exchange_state` and the transports share: no protobuf, no sockets. Source: Envoy's
``external_processor.proto`` and the Endpoint Picker Protocol 1.0 (05-router §2).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from kvplan_router.core.values import Wait


class BodyMode(Enum):
    """How the gateway sends one direction's body, as its ``protocol_config`` says."""

    NONE = auto()
    BUFFERED = auto()
    STREAMED = auto()
    FULL_DUPLEX = auto()


class InFlightMode(Enum):
    """How long a request counts as in flight (05-router §3)."""

    TRAILERS = "trailers"
    """Until the gateway ends the stream, which waits for response trailers: exact, our own Envoy."""
    STREAM = "stream"
    """Until the gateway ends the stream, which carries the response body: exact, any gateway in full duplex."""
    EARLY_CLOSE = "early-close"
    """The stream ends with the request; how long the answer takes is estimated from the engines' gauges."""


class Phase(Enum):
    """The part of a request or response that a message is about."""

    REQUEST_HEADERS = auto()
    REQUEST_BODY = auto()
    REQUEST_TRAILERS = auto()
    RESPONSE_HEADERS = auto()
    RESPONSE_BODY = auto()
    RESPONSE_TRAILERS = auto()


@dataclass(frozen=True, slots=True)
class Modes:
    """The body modes of one stream.

    Attributes:
        request: of the request's body.
        response: of the response's body.
        body_before_reply: the gateway sends a streamed body without waiting for the reply to the headers.
    """

    request: BodyMode = BodyMode.NONE
    response: BodyMode = BodyMode.NONE
    body_before_reply: bool = False


@dataclass(frozen=True, slots=True)
class RequestHeaders:
    """The first message of a stream.

    Attributes:
        headers: by lower-case name, pseudo headers included; several values of one name are joined by commas.
        end_of_stream: nothing follows, as with GET.
        subset: the endpoints that the gateway allows; None where it does not say.
        modes: of this stream.
    """

    headers: Mapping[str, str]
    end_of_stream: bool = False
    subset: tuple[str, ...] | None = None
    modes: Modes = Modes()


@dataclass(frozen=True, slots=True)
class Body:
    """A piece of a body, or all of it.

    Attributes:
        phase: REQUEST_BODY or RESPONSE_BODY.
    """

    phase: Phase
    data: bytes
    end_of_stream: bool = False


@dataclass(frozen=True, slots=True)
class Trailers:
    """Trailers of one direction.

    Attributes:
        phase: REQUEST_TRAILERS or RESPONSE_TRAILERS.
        served: the endpoint that served the request, where the gateway tells.
    """

    phase: Phase
    served: str | None = None


@dataclass(frozen=True, slots=True)
class ResponseHeaders:
    """The head of the response.

    Attributes:
        served: as in :class:`Trailers`.
    """

    served: str | None = None


Message = RequestHeaders | Body | Trailers | ResponseHeaders


@dataclass(frozen=True, slots=True)
class Route:
    """Go on, to these destinations; answers REQUEST_HEADERS or a buffered REQUEST_BODY.

    Attributes:
        phase: the message that is answered.
        destinations: ``ip:port``, best first; empty leaves the choice to the gateway.
        headers: to set on the request.
        watch_response: ask the gateway to stream this response's body here.
    """

    phase: Phase
    destinations: tuple[str, ...]
    headers: Mapping[str, str] = field(default_factory=dict)
    watch_response: bool = False


@dataclass(frozen=True, slots=True)
class Continue:
    """Go on unchanged: the empty reply to the message of ``phase``."""

    phase: Phase


@dataclass(frozen=True, slots=True)
class Echo:
    """Hand one piece of a full-duplex body back unchanged."""

    body: Body


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer the client at once.

    Attributes:
        retry_after_seconds: for the header of that name; 0 leaves it out.
        reason: a sentence for the client.
    """

    status: int
    retry_after_seconds: int
    reason: str


@dataclass(frozen=True, slots=True)
class Hold:
    """Give the gateway more time, and go on with what the decider releases.

    Attributes:
        wait: ticket and deadline.
    """

    wait: Wait


@dataclass(frozen=True, slots=True)
class End:
    """Close the stream with OK: nothing of this request needs us any more."""


Reply = Route | Continue | Echo | Refuse | Hold | End
