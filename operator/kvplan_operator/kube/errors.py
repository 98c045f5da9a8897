"""Every answer of the API server that is no success, told apart by what the caller can do about it.

Inputs: status code, headers and Status of an answer. Outputs: one of these errors, with the server's own words.

::

    OperatorError
    ├── KubeError
    │   ├── NotFound            the object, or its namespace, is not there
    │   │   └── NotServed       the API server does not know the kind (yet)
    │   ├── AlreadyExists       the name is taken
    │   ├── Conflict            another writer was faster: read again, decide again, write again
    │   ├── FieldConflict       another manager owns fields: a decision, never a retry
    │   ├── Gone                the name now belongs to another object: its uid changed
    │   ├── Expired             the version is older than what the API server remembers: list again
    │   ├── Terminating         the object or its namespace is going away: nothing can be made there
    │   ├── Refused             the request itself is wrong, or not allowed
    │   ├── Throttled           asked to come back later
    │   └── Unavailable         no usable answer; whether a write was done is unknown
    └── LeadershipLost          a write was not sent, because another process may lead
"""

from collections.abc import Mapping
from typing import Any

from kvplan_operator.errors import OperatorError

Status = Mapping[str, Any]
"""The Status object of a refusal, or ``{"message": text}`` where the answer is no JSON."""

_ALREADY_EXISTS = "AlreadyExists"
_BEING_DELETED = "object is being deleted"
_NAMESPACE_TERMINATING = "NamespaceTerminating"
_UID_FIELD = "metadata.uid"


class KubeError(OperatorError):
    """A request to the API server that did not succeed.

    Attributes:
        code: of HTTP; 0 where there was no answer.
        reason: one CamelCase word of the server, empty where it gave none.
        causes: field and message of each cause, as the server lists them.
    """

    def __init__(
        self, message: str, *, code: int = 0, reason: str = "", causes: tuple[Mapping[str, str], ...] = ()
    ) -> None:
        super().__init__(message)
        self.code, self.reason, self.causes = code, reason, causes


class NotFound(KubeError):
    """The object, or the namespace it should be in, is not there."""


class NotServed(NotFound):
    """The API server does not know the kind: its CRD is missing, or was created a moment ago."""


class AlreadyExists(KubeError):
    """An object of that name is there already."""


class Conflict(KubeError):
    """The object changed since it was read: read it again, decide again, write again."""


class FieldConflict(KubeError):
    """Another field manager owns fields that the apply would change; ``causes`` names fields and managers."""


class Gone(KubeError):
    """The object that was meant no longer exists; another one bears its name."""


class Expired(KubeError):
    """The resource version, or the place in a list, is older than what the API server remembers."""


class Terminating(KubeError):
    """The object or its namespace is going away."""


class Refused(KubeError):
    """The request is wrong or not allowed; the same request will be refused again."""


class Throttled(KubeError):
    """The API server asks to come back later.

    Attributes:
        retry_after_seconds: when.
    """

    def __init__(self, message: str, *, retry_after_seconds: float, code: int = 429, reason: str = "") -> None:
        super().__init__(message, code=code, reason=reason)
        self.retry_after_seconds = retry_after_seconds


class Unavailable(KubeError):
    """No usable answer: network, timeout or a fault of the server. A write may have been done or not."""


class LeadershipLost(OperatorError):
    """Another process may lead now: this one stops writing and ends."""


def refusal(
    request: str, code: int, status: Status, retry_after: str | None = None, uid: str | None = None
) -> KubeError:
    """The error that an answer means.

    Args:
        request: what was asked, for people: ``apply Deployment chat/a``.
        code: of HTTP, or of an ERROR event.
        status: what the answer said.
        retry_after: header, seconds in decimal.
        uid: identity that the request insisted on.
    """
    message, reason = str(status.get("message") or ""), str(status.get("reason") or "")
    text = f"{request}: {message.strip() or f'HTTP {code}'}"
    if code == 429:
        return Throttled(text, retry_after_seconds=_seconds(retry_after), reason=reason)
    causes = tuple((status.get("details") or {}).get("causes") or ())
    return _kind(code, reason, message, causes, uid)(text, code=code, reason=reason, causes=causes)


def _kind(
    code: int, reason: str, message: str, causes: tuple[Mapping[str, str], ...], uid: str | None
) -> type[KubeError]:
    if code == 404:
        return NotFound if reason else NotServed
    if code == 409:
        return _conflict(reason, message, causes, uid)
    if code == 410:
        return Expired
    if code >= 500:
        return Unavailable
    if uid is not None and {cause.get("field") for cause in causes} == {_UID_FIELD}:
        return Gone
    if any(cause.get("reason") == _NAMESPACE_TERMINATING for cause in causes):
        return Terminating
    return Refused


def _conflict(reason: str, message: str, causes: tuple[Mapping[str, str], ...], uid: str | None) -> type[KubeError]:
    if message.startswith(_BEING_DELETED):
        return Terminating
    if reason == _ALREADY_EXISTS:
        return AlreadyExists
    if causes:
        return FieldConflict
    return Gone if uid is not None and uid in message else Conflict


def _seconds(retry_after: str | None) -> float:
    return float(retry_after) if retry_after is not None and retry_after.isdecimal() else 1.0
