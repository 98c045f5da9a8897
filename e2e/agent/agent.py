"""The agent of one process node: what a kubelet is to a real one.

Inputs: the API server, the Node, settings. Outputs: a Node that is Ready, and every pod bound to it as processes. It
ends when it is cancelled; no process and no file of a pod is left then.
"""

import asyncio

import aiohttp

from e2e.agent import node as nodes
from e2e.agent.api import Api, Change, Object
from e2e.agent.pod import Pod
from e2e.agent.settings import Settings

_PODS = "/api/v1/pods"


class Agent:
    """The pods of one node."""

    def __init__(self, api: Api, node: Object, settings: Settings) -> None:
        self._api = api
        self._node = node
        self._settings = settings
        self._pods: dict[str, Pod] = {}

    async def run(self) -> None:
        """Register the node and run its pods until cancelled."""
        await nodes.register(self._api, self._node)
        async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
            group.create_task(nodes.keep_alive(self._api, self._node, self._settings))
            selector = f"spec.nodeName={self._node['metadata']['name']}"
            async for change in self._api.follow(_PODS, fieldSelector=selector):
                self._take(change, group, session)

    def _take(self, change: Change, group: asyncio.TaskGroup, session: aiohttp.ClientSession) -> None:
        by_uid = {pod["metadata"]["uid"]: pod for pod in change.objects}
        gone = set(self._pods) - set(by_uid) if change.whole else set(by_uid) if change.removed else set()
        for uid in gone & set(self._pods):
            self._pods.pop(uid).vanish()
        for uid, pod in by_uid.items() if not change.removed else ():
            if uid in self._pods:  # a stopped pod stays here until the API server has it no more
                self._pods[uid].update(pod)
            else:
                self._pods[uid] = Pod(self._api, pod, self._settings, session)
                group.create_task(self._pods[uid].run())
