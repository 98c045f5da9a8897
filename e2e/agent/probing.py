"""Watch over a running container by its probes.

Inputs: the container's spec and target. Outputs: `started` and `ready` as they change; the end of `until_condemned`
when the container must be stopped. A container that is being stopped anyway is not condemned; its readiness is still
probed.
"""

import asyncio
from collections.abc import AsyncIterator, Callable

from e2e.agent.actions import Target, perform
from e2e.agent.api import Object
from e2e.agent.probes import Probe, verdicts
from e2e.agent.waiting import first_of

_HOOK_SECONDS = 3600.0


class Probing:
    """The probes of one life of a container.

    Attributes:
        grace_seconds: of the probe that condemned the container, None when it is the pod's.
    """

    def __init__(self, spec: Object, target: Target, report: Callable[..., None], stopping: asyncio.Event) -> None:
        self._spec = spec
        self._target = target
        self._report = report
        self._stopping = stopping
        self.grace_seconds: float | None = None

    async def until_condemned(self) -> None:
        """Probe; return when the postStart hook, the startup or the liveness probe failed."""
        hook = self._spec.get("lifecycle", {}).get("postStart")
        if hook and not await perform(hook, self._target, _HOOK_SECONDS):
            return
        if not await self._has_started():
            return
        self._report(started=True, ready="readinessProbe" not in self._spec)
        await first_of(self._keep_readiness(), self._until_dead())

    async def _has_started(self) -> bool:
        async for success in self._verdicts("startupProbe"):
            return success
        return True

    async def _keep_readiness(self) -> None:
        async for success in self._verdicts("readinessProbe"):
            self._report(ready=success)
        await _for_ever()

    async def _until_dead(self) -> None:
        async for success in self._verdicts("livenessProbe"):
            if not success and not self._stopping.is_set():
                return
        await _for_ever()

    async def _verdicts(self, name: str) -> AsyncIterator[bool]:
        """Yield nothing when the container has no such probe."""
        spec = self._spec.get(name)
        if spec is None:
            return
        async for success in verdicts(Probe.of(spec), lambda seconds: perform(spec, self._target, seconds)):
            self.grace_seconds = None if success else spec.get("terminationGracePeriodSeconds")
            yield success


async def _for_ever() -> None:
    await asyncio.Event().wait()
