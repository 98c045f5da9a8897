"""Bring a pod's status to the API server: the latest one, once, and again until it is there.

Inputs: a function that gives the status as it is now. Outputs: patches; states that passed meanwhile are left out.
"""

import asyncio
import logging
from collections.abc import Callable

from e2e.agent.api import Api, Object
from e2e.agent.errors import AgentError, Refused

_RETRY_SECONDS = 0.5
_FOR_GOOD = (404, 409, 422)  # the pod is gone, is another one, or the status is wrong: trying again is no use
_LOG = logging.getLogger(__name__)


class Publisher:
    """Publishes the status of one pod.

    Attributes:
        published: the last status that the API server has, or has refused for good.
    """

    def __init__(self, api: Api, path: str, uid: str, current: Callable[[], Object]) -> None:
        self._api = api
        self._path = f"{path}/status"
        self._uid = uid
        self._current = current
        self._changed = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self.published: Object = {}

    def changed(self) -> None:
        """Note that the status may have changed."""
        self._changed.set()

    def repeat(self) -> None:
        """Note that somebody else has overwritten the status."""
        self.published = {}
        self._changed.set()

    async def run(self) -> None:
        """Publish changes until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self.publish()

    async def publish(self) -> None:
        """Publish the status unless the API server has it already; return when it has."""
        async with self._one_at_a_time:  # or an older status could overtake a newer one
            while (status := self._current()) != self.published:
                if await self._patched(status):
                    self.published = status

    async def _patched(self, status: Object) -> bool:
        try:
            await self._api.patch(self._path, {"metadata": {"uid": self._uid}, "status": status})
        except AgentError as error:
            _LOG.info("%s", error)
            if isinstance(error, Refused) and error.status in _FOR_GOOD:
                return True
            await asyncio.sleep(_RETRY_SECONDS)
            return False
        return True
