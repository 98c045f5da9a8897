"""What a client is told when a request is refused.

Refused                    the base: a status, a kind, a message
├── BadRequest             400, the request can never be served
├── NotFound               404, no such model
├── Unauthorized           401, no or a wrong API key
├── QueueFull              503, over ``--max-num-queued-…``
└── EngineGone             500, the engine is shutting down or dead
"""

from http import HTTPStatus
from typing import Any, ClassVar


class Refused(Exception):
    """A request is answered with an error."""

    status: ClassVar[HTTPStatus]
    kind: ClassVar[str]

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param

    def body(self) -> dict[str, Any]:
        """The error object that vLLM sends."""
        return error_body(self.message, self.kind, self.status, self.param)


class BadRequest(Refused):
    """The request can never be served."""

    status = HTTPStatus.BAD_REQUEST
    kind = "BadRequestError"


class NotFound(Refused):
    """There is no such model."""

    status = HTTPStatus.NOT_FOUND
    kind = "NotFoundError"


class Unauthorized(Refused):
    """The API key is missing or wrong."""

    status = HTTPStatus.UNAUTHORIZED
    kind = "Unauthorized"


class QueueFull(Refused):
    """Too many requests or prompt tokens are in flight.

    Args:
        reason: label value of ``vllm:admission_rejections_total``.
    """

    status = HTTPStatus.SERVICE_UNAVAILABLE
    kind = "ServiceUnavailableError"

    def __init__(self, reason: str, limit: int) -> None:
        super().__init__(f"The server is overloaded: {reason} ({limit}) would be exceeded. Retry later.")
        self.reason = reason


class EngineGone(Refused):
    """The engine is shutting down, or dead."""

    status = HTTPStatus.INTERNAL_SERVER_ERROR
    kind = "InternalServerError"


def error_body(message: str, kind: str, status: int, param: str | None = None) -> dict[str, Any]:
    """The error object that vLLM sends."""
    return {"error": {"message": message, "type": kind, "param": param, "code": int(status)}}
