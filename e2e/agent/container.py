"""One container: started, probed, restarted by its pod's policy, stopped with its grace.

Inputs: its spec and setting. Outputs: its status, and a process while it runs. `run` returns when it will not be
started again. Seconds throughout.
"""

import asyncio
import uuid
from typing import Any

from e2e.agent import clock, restarts
from e2e.agent.actions import Target, perform
from e2e.agent.api import Object
from e2e.agent.child import Child
from e2e.agent.errors import AgentError, CannotRun
from e2e.agent.preparation import Prepared, prepare
from e2e.agent.probing import Probing
from e2e.agent.setting import Setting
from e2e.agent.waiting import first_of

_RETRY_SECONDS = 1.0
_LEAST_AFTER_HOOK_SECONDS = 2.0
_START_FAILED = 128


class Container:
    """A container of a pod on this node.

    Attributes:
        status: as in the pod's status.
    """

    def __init__(self, spec: Object, setting: Setting, restart_policy: str, before: Object | None = None) -> None:
        self._spec = spec
        self._setting = setting
        self._policy = restart_policy
        self._stopping = asyncio.Event()
        self._child: Child | None = None
        self._target: Target | None = None
        self._ends_in_a_row = 0
        self.status = _first_status(spec, before)

    @property
    def exit_code(self) -> int | None:
        """The code of a container that has ended and was not started again."""
        terminated = self.status["state"].get("terminated")
        return terminated["exitCode"] if terminated else None

    async def run(self) -> None:
        """Run the container until it has ended for good, or was stopped."""
        while not self._stopping.is_set():
            prepared = await self._prepare()
            if prepared is None:
                await first_of(self._stopping.wait(), seconds=_RETRY_SECONDS)
                continue
            code = await self._run_once(prepared)
            if self._stopping.is_set() or not restarts.starts_again(self._policy, code):
                return
            await self._back_off()

    async def stop(self, grace: float) -> None:
        """Stop the container for good: preStop, SIGTERM, and SIGKILL when the grace is over."""
        self._stopping.set()
        if self._child is not None:
            await self._end(self._child, grace)

    def kill(self) -> None:
        """Stop the container for good and at once."""
        self._stopping.set()
        if self._child is not None:
            self._child.kill()

    async def _prepare(self) -> Prepared | None:
        try:
            return await prepare(self._spec, self._setting)
        except AgentError as why:
            reason = why.reason if isinstance(why, CannotRun) else "CreateContainerConfigError"
            self._set(state={"waiting": {"reason": reason, "message": str(why)}})
            return None

    async def _run_once(self, prepared: Prepared) -> int:
        started = clock.now()
        try:
            code, problem = await self._live(prepared, started), {}
        except CannotRun as why:
            code, problem = _START_FAILED, {"reason": why.reason, "message": str(why)}
        reason = {"reason": "Completed" if code == 0 else "Error"}
        ended = {"exitCode": code, "startedAt": started, "finishedAt": clock.now(), **reason, **problem}
        self._set(state={"terminated": ended}, ready=False, started=False)
        return code

    async def _live(self, prepared: Prepared, started: str) -> int:
        self._target = target = prepared.target
        child = await Child.start(prepared.words, target.environment, target.directory, target.log)
        self._child = child
        began = asyncio.get_running_loop().time()
        try:
            if self._stopping.is_set():  # it was stopped while it was being started
                child.kill()
            self._set(state={"running": {"startedAt": started}}, containerID=f"process://{uuid.uuid4()}")
            await self._watch_over(child, target)
            return await child.wait()
        finally:
            self._child = None
            child.kill()
            lived = asyncio.get_running_loop().time() - began
            self._ends_in_a_row = 1 if lived > restarts.FORGIVEN_AFTER_SECONDS else self._ends_in_a_row + 1

    async def _watch_over(self, child: Child, target: Target) -> None:
        """Return when the process has ended, by itself, by `stop`, or because a probe condemned it."""
        probing = Probing(self._spec, target, self._set, self._stopping)
        await first_of(child.wait(), probing.until_condemned())
        if not child.ended and not self._stopping.is_set():
            await self._end(child, self._grace if probing.grace_seconds is None else probing.grace_seconds)

    async def _end(self, child: Child, grace: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace
        hook = self._spec.get("lifecycle", {}).get("preStop")
        if hook and self._target and grace > 0:
            await first_of(child.wait(), perform(hook, self._target, grace))
            deadline = max(deadline, loop.time() + _LEAST_AFTER_HOOK_SECONDS)
        child.terminate()
        if not await first_of(child.wait(), seconds=max(deadline - loop.time(), 0.0)):
            child.kill()
            await child.wait()

    async def _back_off(self) -> None:
        last = self.status["state"]
        seconds = restarts.pause(self._ends_in_a_row) * self._setting.back_off_scale
        if seconds > 0:
            message = f"back-off {seconds:g}s restarting failed container={self._spec['name']} pod={self._setting.name}"
            self._set(state={"waiting": {"reason": "CrashLoopBackOff", "message": message}}, lastState=last)
            await first_of(self._stopping.wait(), seconds=seconds)
        if not self._stopping.is_set():
            self._set(lastState=last, restartCount=self.status["restartCount"] + 1)

    @property
    def _grace(self) -> float:
        return float(self._setting.pod["spec"].get("terminationGracePeriodSeconds", 30))

    def _set(self, **changes: Any) -> None:
        self.status = {**self.status, **changes}
        self._setting.changed()


def _first_status(spec: Object, before: Object | None) -> Object:
    """A container that ran under an earlier agent ended with it: this is a restart."""
    ran = before is not None and "waiting" not in before["state"]
    return {
        "name": spec["name"],
        "image": spec["image"],
        "imageID": "",
        "ready": False,
        "started": False,
        "restartCount": before["restartCount"] + ran if before else 0,
        "state": {"waiting": {"reason": "ContainerCreating"}},
    }
