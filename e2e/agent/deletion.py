"""Tell the API server that a pod is stopped, so that it goes away."""

import asyncio
import logging

from e2e.agent.api import Api
from e2e.agent.errors import AgentError, Refused

_RETRY_SECONDS = 0.5
_GONE = (404, 409)  # not there, or another pod of that name
_LOG = logging.getLogger(__name__)


async def delete(api: Api, path: str, uid: str) -> None:
    """Delete a stopped pod; return when the API server has done so."""
    while True:
        try:
            await api.delete(path, {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})
        except AgentError as error:
            _LOG.info("%s", error)
            if isinstance(error, Refused) and error.status in _GONE:
                return
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            return
