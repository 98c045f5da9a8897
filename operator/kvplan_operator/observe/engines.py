"""What each engine of a fleet says of itself, asked directly.

Inputs: the fleet, pods, the facts before. Outputs: one ``Fact`` per engine pod, by uid. Capacity and load come from
``/metrics``; the version, which no running server changes, is asked once.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence

from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.model.engine_pods import ENGINE_PORT, endpoint, engine_pods
from kvplan_operator.model.engine_text import engine_state
from kvplan_operator.model.measured_facts import fresh, kept
from kvplan_operator.model.pods import Object, name_of, part
from kvplan_operator.model.snapshot import EngineState, Fact
from kvplan_operator.observe.http import PodHttp, Unreachable
from kvplan_solver.errors import InvalidInput

EngineFacts = Mapping[str, Fact[EngineState]]


async def look_at_engines(
    fleet: ServingFleet, pods: Sequence[Object], http: PodHttp, now: float, before: EngineFacts
) -> dict[str, Fact[EngineState]]:
    """A fact for every running engine pod of the fleet."""
    found = {str(part(pod, "metadata").get("uid") or name_of(pod)): pod for _, pod in engine_pods(fleet, pods)}
    facts = await asyncio.gather(*(_look(pod, http, now, before.get(uid)) for uid, pod in found.items()))
    return dict(zip(found, facts, strict=True))


async def _look(pod: Object, http: PodHttp, now: float, before: Fact[EngineState] | None) -> Fact[EngineState]:
    source, address = f"Pod {name_of(pod)}", endpoint(pod, ENGINE_PORT)
    if address is None:
        return kept(before, source, now, "it has no address whose metrics could be read")
    known = before.value.version if before is not None and before.value is not None else None
    try:
        text = await http.text(f"{address}/metrics")
        return fresh(engine_state(text, known or await _version(http, address)), source, now)
    except (Unreachable, InvalidInput) as error:
        return kept(before, source, now, str(error))


async def _version(http: PodHttp, address: str) -> str | None:
    """The version; None where the server does not say, which older ones do not."""
    try:
        document = json.loads(await http.text(f"{address}/version"))
    except (Unreachable, ValueError, RecursionError):
        return None
    version = document.get("version") if isinstance(document, dict) else None
    return version[:64] if isinstance(version, str) and version.isprintable() else None
