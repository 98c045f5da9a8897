"""What routers reserve against what the index allows, and what their Envoys let pass without asking them.

Inputs: router pods and the table by watches, the routers' and Envoys' own pages: they tell nobody, so they are asked
twice a second. Outputs: every sum over a budget, in words, and the requests that were answered without a plan.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout

from e2e.loop.gateways import ROUTERS
from e2e.loop.looking import ADMIN_PORT
from e2e.loop.manifests import FLEET
from e2e.loop.world import NAMESPACE
from kvplan_operator.kube.client import Client
from kvplan_operator.kube.reflector import Reflector
from kvplan_operator.kube.resources import CONFIG_MAPS, PODS

ENVOY_PORT = 9901
_LOOK_SECONDS = 0.5
_PATIENCE = ClientTimeout(total=5.0)
_TABLE = f"{FLEET}-table"


class Reservations:
    """What was seen.

    Attributes:
        over_budget: slots that routers reserved more tokens on than the index allows, in words.
        unplanned: requests that each Envoy, by its address, answered without its router.
        looks: how often all routers were asked.
    """

    def __init__(self, client: Client) -> None:
        self._routers: Reflector[Any] = Reflector(client, PODS, namespace=NAMESPACE, labels=ROUTERS)
        self._tables: Reflector[Any] = Reflector(
            client, CONFIG_MAPS, namespace=NAMESPACE, fields=f"metadata.name={_TABLE}"
        )
        self.over_budget: list[str] = []
        self.unplanned: Counter[str] = Counter()
        self.looks = 0
        self._allowed: Mapping[str, int] = {}

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group, ClientSession(timeout=_PATIENCE) as session:
            group.create_task(self._routers.run())
            group.create_task(self._tables.run())
            await self.synced()
            while True:
                await self._look(session)
                await asyncio.sleep(_LOOK_SECONDS)

    async def synced(self) -> None:
        """Return when routers and table are known."""
        await self._routers.synced.wait()
        await self._tables.synced.wait()

    async def _look(self, session: ClientSession) -> None:
        known = (pod["status"].get("podIP", "") for pod in self._routers.objects.values())
        addresses = [address for address in known if address]
        said = await asyncio.gather(*(_reserved(session, address) for address in addresses))
        wrong, self._allowed = over(summed(said), self._budgets(), self._allowed)
        self.over_budget += wrong
        self.looks += 1
        passed = await asyncio.gather(*(_passed(session, address) for address in addresses))
        self.unplanned |= dict(zip(addresses, passed, strict=True))

    def _budgets(self) -> dict[str, int]:
        index = json.loads(self._tables.objects[NAMESPACE, _TABLE]["data"]["index.json"])
        return {slot["slot"]: int(slot["budgetTokens"]) for slot in index["slots"]}


def summed(said: Iterable[Mapping[str, int]]) -> Counter[str]:
    """Tokens that all routers reserve by slot."""
    total: Counter[str] = Counter()
    for one in said:
        total.update(one)
    return total


def over(
    reserved: Mapping[str, int], budgets: Mapping[str, int], before: Mapping[str, int]
) -> tuple[list[str], Mapping[str, int]]:
    """Slots over their budget, in words, and what the next look allows.

    A budget that shrank binds what is reserved from then on: what was reserved before may end.

    Args:
        reserved: tokens by slot.
        budgets: of the slots of the index.
        before: what the last look allowed for this one.
    """
    now = {slot: (reserved.get(slot, 0), max(budget, before.get(slot, 0))) for slot, budget in budgets.items()}
    wrong = [f"{slot}: {tokens} of {allowed}" for slot, (tokens, allowed) in now.items() if tokens > allowed]
    return wrong, {slot: max(budget, reserved.get(slot, 0)) for slot, budget in budgets.items()}


async def _reserved(session: ClientSession, address: str) -> Mapping[str, int]:
    """Tokens that a router reserves by slot; nothing where it is going, or has not come yet."""
    text = await _page(session, f"http://{address}:{ADMIN_PORT}/state")
    return dict(json.loads(text)["reserved"]) if text else {}


async def _passed(session: ClientSession, address: str) -> int:
    """Requests that an Envoy let pass when its router did not answer."""
    text = await _page(session, f"http://{address}:{ENVOY_PORT}/stats?filter=ext_proc.failure_mode_allowed")
    return sum(int(line.rpartition(" ")[2]) for line in text.splitlines())


async def _page(session: ClientSession, url: str) -> str:
    try:
        async with session.get(url) as response:
            return await response.text()
    except (ClientError, TimeoutError):
        return ""
