"""One pod on this node: address, volumes, init containers, containers, status, end.

Inputs: the pod whenever it changes. Outputs: processes; the pod's status on the API server; the pod's deletion once all
is stopped. No process of it is left when `run` returns, however it ends.
"""

import asyncio
import shutil
from contextlib import ExitStack
from typing import Any

import aiohttp

from e2e.agent import addresses, clock, status
from e2e.agent.api import Api, Object
from e2e.agent.container import Container
from e2e.agent.deletion import delete
from e2e.agent.publishing import Publisher
from e2e.agent.setting import Setting
from e2e.agent.settings import Settings
from e2e.agent.volumes import Volumes
from e2e.agent.waiting import first_of

HOST = "127.0.0.1"
_GRACE_OF_THE_VANISHED_SECONDS = 1.0
_DEFAULT_GRACE_SECONDS = 30.0


class Pod:
    """A pod that is bound to this node."""

    def __init__(self, api: Api, pod: Object, settings: Settings, session: aiohttp.ClientSession) -> None:
        self._api = api
        self._pod = pod
        self._stack = ExitStack()
        address = HOST if pod["spec"].get("hostNetwork") else self._stack.enter_context(addresses.lease())
        self._own_status = _first_status(pod, address)
        self._path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        self._publisher = Publisher(api, self._path, pod["metadata"]["uid"], self._status)
        self._setting = self._settle(address, settings, session)
        self._make_containers()
        self._told_to_stop = asyncio.Event()
        self._vanished = asyncio.Event()
        self._ended = False
        self.update(pod)

    def update(self, pod: Object) -> None:
        """Take over the API server's latest word."""
        self._pod = self._with_own_status(pod)
        self._setting.pod = self._pod
        self._setting.volumes.update(self._pod)
        if status.contradicts(pod, self._publisher.published):
            self._publisher.repeat()
        if "deletionTimestamp" in pod["metadata"]:
            self._told_to_stop.set()

    def vanish(self) -> None:
        """Note that the API server has the pod no more, as after a forced deletion."""
        self._vanished.set()
        self._told_to_stop.set()

    async def run(self) -> None:
        """Run the pod from its start to its deletion."""
        with self._stack:
            self._stack.callback(shutil.rmtree, self._setting.root, ignore_errors=True)
            self._stack.callback(self._kill)
            (self._setting.root / "tmp").mkdir(parents=True)
            await first_of(self._publisher.run(), self._setting.volumes.run(), self._live_and_end())

    async def _live_and_end(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._stop_when_told())
            await self._live()
        if not self._vanished.is_set():
            if self._ended:
                await self._publisher.publish()
            await delete(self._api, self._path, self._pod["metadata"]["uid"])

    async def _live(self) -> None:
        if self._pod["status"].get("phase") in ("Succeeded", "Failed"):
            return  # it ended under an earlier agent
        self._publisher.changed()
        await first_of(self._setting.volumes.ready.wait(), self._told_to_stop.wait())
        if await self._initialised():
            async with asyncio.TaskGroup() as group:
                for container in self._containers:
                    group.create_task(container.run())
        self._ended = True
        self._publisher.changed()

    async def _initialised(self) -> bool:
        for container in self._init:
            await container.run()
            if container.exit_code != 0:
                return False
        return not self._told_to_stop.is_set()

    async def _stop_when_told(self) -> None:
        await self._told_to_stop.wait()
        grace = float(self._pod["metadata"].get("deletionGracePeriodSeconds", _DEFAULT_GRACE_SECONDS))
        await first_of(self._stop_all(grace), self._vanished.wait())
        if self._vanished.is_set():
            await self._stop_all(_GRACE_OF_THE_VANISHED_SECONDS)

    async def _stop_all(self, grace: float) -> None:
        await asyncio.gather(*(container.stop(grace) for container in [*self._init, *self._containers]))

    def _kill(self) -> None:
        for container in [*self._init, *self._containers]:
            container.kill()

    def _settle(self, address: str, settings: Settings, session: aiohttp.ClientSession) -> Setting:
        root = settings.root / self._pod["metadata"]["uid"]
        return Setting(
            api=self._api,
            pod=self._pod,
            address=address,
            root=root,
            logs=settings.logs,
            volumes=Volumes(self._api, self._pod, root / "volumes", self._publisher.changed),
            images=settings.images,
            session=session,
            back_off_scale=settings.back_off_scale,
            changed=self._publisher.changed,
        )

    def _make_containers(self) -> None:
        spec, before = self._pod["spec"], self._pod.get("status", {})
        policy = spec.get("restartPolicy", "Always")
        init_policy = "Never" if policy == "Never" else "OnFailure"
        self._init = self._made(spec.get("initContainers", []), init_policy, before.get("initContainerStatuses", []))
        self._containers = self._made(spec["containers"], policy, before.get("containerStatuses", []))

    def _made(self, specs: list[Object], policy: str, before: list[Object]) -> list[Container]:
        statuses = {each["name"]: each for each in before}
        return [Container(spec, self._setting, policy, statuses.get(spec["name"])) for spec in specs]

    def _status(self) -> Object:
        init, containers = [each.status for each in self._init], [each.status for each in self._containers]
        known = status.pod_status(self._pod, init, containers, ended=self._ended, now=clock.now())
        waiting_for = "" if self._setting.volumes.ready.is_set() else self._setting.volumes.waiting_for
        self._own_status |= {**known, "message": waiting_for or None}
        self._pod = self._with_own_status(self._pod)
        return dict(self._own_status)

    def _with_own_status(self, pod: Object) -> Object:
        """The API server's word lags behind what this agent has just decided."""
        others = status.by_type(pod.get("status", {}).get("conditions", []))
        conditions = {**others, **status.by_type(self._own_status.get("conditions", []))}
        return {**pod, "status": {**pod.get("status", {}), **self._own_status, "conditions": [*conditions.values()]}}


def _first_status(pod: Object, address: str) -> dict[str, Any]:
    return {
        "hostIP": HOST,
        "hostIPs": [{"ip": HOST}],
        "podIP": address,
        # Lists of addresses are merged by address; without this a pod would keep the one an earlier agent gave it.
        "podIPs": [{"$patch": "replace"}, {"ip": address}],
        "startTime": pod.get("status", {}).get("startTime", clock.now()),
    }
