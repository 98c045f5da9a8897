"""The volumes of one pod as directories, kept up to date.

Inputs: the pod, the API server, a directory. Outputs: a directory per volume; `ready` once all are filled. ConfigMaps,
Secrets, labels and annotations reach a running pod as soon as they change; a kubelet may take a minute.
"""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from e2e.agent import atomic, references
from e2e.agent.api import Api, Object
from e2e.agent.content import Files, Known, files
from e2e.agent.errors import AgentError, NotYet
from e2e.agent.references import Reference
from e2e.agent.tokens import keep_fresh


class Volumes:
    """The volumes of one pod.

    Attributes:
        directories: of each volume, by its name.
        ready: set once every volume has its content.
        waiting_for: what is missing, for people.
    """

    def __init__(self, api: Api, pod: Object, root: Path, told: Callable[[], None]) -> None:
        self._api = api
        self._told = told
        self._objects: dict[tuple[str, str], Object | None] = {}
        self._tokens: dict[str, str] = {}
        self._written: dict[str, Files] = {}
        self._changed = asyncio.Event()
        self.pod = pod
        self.directories = {volume["name"]: root / volume["name"] for volume in self._volumes}
        self.ready = asyncio.Event()
        self.waiting_for = ""

    @property
    def _volumes(self) -> list[Object]:
        volumes: list[Object] = self.pod["spec"].get("volumes", [])
        return volumes

    def update(self, pod: Object) -> None:
        """Take over what has changed about the pod."""
        self.pod = pod
        self._changed.set()

    async def run(self) -> None:
        """Fill the volumes and keep them up to date until cancelled."""
        self._changed.set()
        async with asyncio.TaskGroup() as group:
            for follower in self._followers():
                group.create_task(follower)
            while True:
                await self._changed.wait()
                self._changed.clear()
                self._write_all()

    def _followers(self) -> list[Coroutine[Any, Any, None]]:
        wanted = references.of_volumes(self._volumes)
        return [*(self._follow(each) for each in wanted), *(self._keep_token(each) for each in self._token_sources())]

    async def _follow(self, reference: Reference) -> None:
        path = f"/api/v1/namespaces/{self.pod['metadata']['namespace']}/{reference.resource}"
        async for change in self._api.follow(path, fieldSelector=f"metadata.name={reference.name}"):
            found = change.objects[-1] if change.objects and not change.removed else None
            self._objects[reference.resource, reference.name] = found
            self._changed.set()

    async def _keep_token(self, source: Object) -> None:
        async for token in keep_fresh(self._api, self.pod, source):
            self._tokens[source.get("audience", "")] = token
            self._changed.set()

    def _token_sources(self) -> list[Object]:
        projected = (references.as_projected(volume) for volume in self._volumes)
        sources = (source for each in projected if each for source in each["sources"])
        return [source["serviceAccountToken"] for source in sources if "serviceAccountToken" in source]

    def _write_all(self) -> None:
        known = Known(self.pod, self._objects, self._tokens)
        try:
            for volume in self._volumes:
                self._write(volume, known)
        except (AgentError, ValueError) as why:
            self.waiting_for = f"MountVolume.SetUp failed for volume {volume['name']!r}: {why}"
            self._told()
        else:
            self.ready.set()

    def _write(self, volume: Object, known: Known) -> None:
        name = volume["name"]
        projected = references.as_projected(volume)
        if projected is not None:
            wanted = files(projected, known)
            if self._written.get(name) != wanted:
                atomic.write(self.directories[name], wanted)
                self._written[name] = wanted
        elif "emptyDir" in volume:
            self.directories[name].mkdir(parents=True, exist_ok=True)
        else:
            kind = next(key for key in volume if key != "name")
            raise NotYet(f"volume type {kind} is not supported on process nodes")
