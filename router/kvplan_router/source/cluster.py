"""A table in the cluster: the index ConfigMap is watched, the shards it names are fetched.

In: an API client, a fleet. Out: see :class:`kvplan_router.source.interface.TableSource`. Must not write anything, nor
read other ConfigMaps than the fleet's own.
"""

import asyncio
import base64
import binascii
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from kubernetes.aio.client import CoreV1Api
from kubernetes.aio.client.exceptions import NotFoundException

from kvplan_router.source.files import INDEX_FILE
from kvplan_router.source.follow import Changed, Listed, Object, follow

SHARD_FILE = "shard.bin"
_FETCH_SECONDS = 10.0


class ClusterSource:
    """Follows one fleet's index."""

    def __init__(self, api: CoreV1Api, namespace: str, fleet: str) -> None:
        self._api, self._namespace, self._name = api, namespace, f"{fleet}-table"

    async def texts(self) -> AsyncIterator[bytes]:
        """See the protocol. An index that is deleted leaves the table in force."""
        async for found in self._indexes():
            yield str(found.get("data", {}).get(INDEX_FILE, "")).encode()

    async def fleet_uid(self) -> str:
        """The uid of the fleet that owns the index; waits until there is one."""
        async for found in self._indexes():
            if owner := _owner(found):
                return owner
        raise AssertionError("following an object does not end")

    async def _indexes(self) -> AsyncIterator[Object]:
        call = self._api.list_namespaced_config_map_without_preload_content
        selector = f"metadata.name={self._name}"
        async for news in follow(call, namespace=self._namespace, field_selector=selector):
            for found in _present(news):
                yield found

    async def shards(self, names: Iterable[str]) -> Mapping[str, bytes]:
        """See the protocol."""
        wanted = list(names)
        found = await asyncio.gather(*map(self._shard, wanted))
        return {name: data for name, data in zip(wanted, found, strict=True) if data is not None}

    async def _shard(self, name: str) -> bytes | None:
        read = self._api.read_namespaced_config_map_without_preload_content
        try:
            response = await read(name, self._namespace, _request_timeout=_FETCH_SECONDS)
            content: Any = json.loads(await response.read())
        except (NotFoundException, OSError, TimeoutError):
            return None
        try:
            return base64.b64decode(content["binaryData"][SHARD_FILE], validate=True)
        except (KeyError, TypeError, binascii.Error):
            return None


def _present(news: Listed | Changed) -> list[Object]:
    if isinstance(news, Listed):
        return news.objects
    return [] if news.deleted else [news.object]


def _owner(found: Object) -> str:
    owners = found["metadata"].get("ownerReferences", [])
    return next((str(owner["uid"]) for owner in owners if owner["kind"] == "ServingFleet"), "")
