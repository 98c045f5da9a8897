"""Service-account tokens of pods: asked for, and asked for again before they expire.

Inputs: a pod and one `serviceAccountToken` source. Outputs: a token whenever there is a new one. A token is bound to
its pod and ends with it.
"""

import asyncio
import datetime as dt
import logging
from collections.abc import AsyncIterator

from e2e.agent.api import Api, Object
from e2e.agent.errors import AgentError

_RENEWED_AFTER = 0.8  # of its life, as the kubelet does
_RETRY_SECONDS = 0.5
_DEFAULT_LIFE_SECONDS = 3600
_LOG = logging.getLogger(__name__)


async def keep_fresh(api: Api, pod: Object, source: Object) -> AsyncIterator[str]:
    """Yield a token, and a new one after four fifths of each one's life."""
    while True:
        try:
            status = (await _request(api, pod, source))["status"]
        except AgentError as error:
            _LOG.info("token for %s: %s", pod["metadata"]["name"], error)
            await asyncio.sleep(_RETRY_SECONDS)
            continue
        yield status["token"]
        life = dt.datetime.fromisoformat(status["expirationTimestamp"]) - dt.datetime.now(dt.UTC)
        await asyncio.sleep(life.total_seconds() * _RENEWED_AFTER)


async def _request(api: Api, pod: Object, source: Object) -> Object:
    metadata = pod["metadata"]
    account = pod["spec"].get("serviceAccountName", "default")
    bound = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
    spec = {
        "audiences": [source["audience"]] if source.get("audience") else [],
        "expirationSeconds": source.get("expirationSeconds", _DEFAULT_LIFE_SECONDS),
        "boundObjectRef": bound,
    }
    path = f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{account}/token"
    return await api.create(path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
