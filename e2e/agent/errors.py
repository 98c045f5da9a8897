"""Errors of the agent: every message names what failed and why.

::

    BedError
    └── AgentError
        ├── Refused        the API server answered with an error
        ├── Unreachable    the API server did not answer
        ├── NotYet         an object that a pod needs is not there; the agent keeps looking
        └── CannotRun      a container cannot be started as its spec says
"""

from e2e.harness.errors import BedError


class AgentError(BedError):
    """The agent could not do what a pod asks for."""


class Refused(AgentError):
    """The API server refused a request.

    Attributes:
        status: HTTP status code.
    """

    def __init__(self, request: str, status: int, message: str) -> None:
        super().__init__(f"{request}: {status}: {message}")
        self.status = status


class Unreachable(AgentError):
    """The API server did not answer."""


class NotYet(AgentError):
    """Something a pod refers to does not exist yet."""


class CannotRun(AgentError):
    """A container cannot be started.

    Attributes:
        reason: as a kubelet would say it in the container's status.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
