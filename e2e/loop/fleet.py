"""The fleet under test: changed as git would, followed by watches.

Inputs: a world, a client of its API server. Outputs: every step of a change with its time, and waits that end with the
event they wait for. A wait fails only when no step was made for longer than any step takes.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from e2e.loop import steps
from e2e.loop.beside import beside
from e2e.loop.manifests import FLEET
from e2e.loop.patience import Patience
from e2e.loop.steps import Kind
from e2e.loop.world import NAMESPACE, PLACE, World
from kvplan_operator.api.labels import CONFIGURATION_LABEL, FLEET_LABEL
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.pods import project_pod
from kvplan_operator.kube.reflector import Reflector
from kvplan_operator.kube.resources import CONFIG_MAPS, DEPLOYMENTS, PODS, SERVING_FLEETS, Resource

STEP_SECONDS = 180.0
"""Longer than any step, on a machine that is busy with other things too, while the operator crashes."""


@dataclass(frozen=True)
class Step:
    """One step.

    Attributes:
        at: when it was seen, on the monotonic clock, seconds.
        kind: what happened.
        name: of the object.
    """

    at: float
    kind: Kind
    name: str


class Fleet:
    """A fleet as the watches have it.

    Attributes:
        steps: all that were seen, in order.
        patience: told of every event.
    """

    def __init__(self, world: World, client: Client) -> None:
        self.world, self.steps, self.patience = world, list[Step](), Patience(STEP_SECONDS)
        own, engines = f"{FLEET_LABEL}={FLEET}", f"{FLEET_LABEL}={FLEET},{CONFIGURATION_LABEL}"
        self._reflectors = (
            self._follow(client, SERVING_FLEETS, steps.of_fleet),
            self._follow(client, CONFIG_MAPS, steps.of_table, own),
            self._follow(client, DEPLOYMENTS, steps.of_deployment, own),
            self._follow(client, PODS, steps.of_engine, engines, project_pod),
        )

    async def run(self) -> None:
        """Follow everything until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors:
                group.create_task(reflector.run())

    async def synced(self) -> None:
        """Return when everything is known; what was there before is no step."""
        for reflector in self._reflectors:
            await reflector.synced.wait()
        self.steps.clear()

    async def patch(self, spec: Any) -> None:
        """Change the spec as git would."""
        arguments = ("patch", "fleet", FLEET, PLACE, "--type=merge", "--patch", json.dumps({"spec": spec}))
        await asyncio.to_thread(self.world.cluster.kubectl, *arguments)

    async def proposal(self, other_than: str = "") -> str:
        """Digest of the plan that is proposed."""
        await self.patience.until(lambda: self._candidate() not in ("", other_than), lambda: f"a plan: {self._said()}")
        return self._candidate()

    async def accept(self, digest: str) -> None:
        """Accept a plan and return when it is in force."""
        await self.patch({"acceptedPlan": {"digest": digest}})
        await self.patience.until(lambda: self._follows(digest), lambda: f"plan {digest}: {self._said()}")

    @property
    def status(self) -> Any:
        """The status as last seen."""
        return self._reflectors[0].objects.get((NAMESPACE, FLEET), {}).get("status", {})

    def _follow(
        self,
        client: Client,
        resource: Resource,
        told: Callable[[Any, Any], Kind | None],
        labels: str | None = None,
        project: Callable[[Any], Any] = lambda item: item,
    ) -> Reflector[Any]:
        def changed(key: tuple[str, str], old: Any, new: Any) -> None:
            kind = told(old, new)
            if kind is None:
                self.patience.stir()
            else:
                self.steps.append(Step(time.monotonic(), kind, key[1]))
                self.patience.step()

        return Reflector(client, resource, namespace=NAMESPACE, labels=labels, project=project, on_change=changed)

    def _candidate(self) -> str:
        return str(self.status.get("candidatePlan", {}).get("digest", ""))

    def _follows(self, digest: str) -> bool:
        ready = self._conditions().get("Ready", {})
        in_force = self.status.get("currentPlan", {}).get("digest") == digest
        return in_force and (ready["status"], ready["reason"]) == ("True", "AsPlanned")

    def _conditions(self) -> dict[str, Any]:
        return {condition["type"]: condition for condition in self.status.get("conditions", ())}

    def _said(self) -> str:
        """What the operator says of it, and the last steps."""
        ready, last = self._conditions().get("Ready", {}), [f"{step.kind} {step.name}" for step in self.steps[-3:]]
        return f"Ready is {ready.get('status')}, {ready.get('reason')}: {ready.get('message')}; last steps: {last}"


@asynccontextmanager
async def following(world: World, client: Client) -> AsyncIterator[Fleet]:
    """The fleet, followed while the block runs."""
    fleet = Fleet(world, client)
    async with beside(fleet.run()):
        await fleet.synced()
        yield fleet
