"""Which measurements are taken when: all of them now and then, engines and routers alone while something moves."""

import asyncio
from typing import Any, cast

import pytest

from kvplan_operator.logs import FleetLog
from kvplan_operator.model.snapshot import ClusterView, Measured
from kvplan_operator.observe.measure import Sources
from kvplan_operator.reconcile import measuring
from kvplan_operator.reconcile.memory import Memory
from tests.planning import fleet

INTERVAL = fleet().spec.routing.table_interval_seconds

LOOKS: dict[str, tuple[tuple[float, ...], bool, list[str]]] = {
    "at rest all is asked once in an interval": ((0, 2, 4, INTERVAL), False, ["all", "all"]),
    "engines and routers are asked while something moves": ((0, 2, 4, INTERVAL), True, ["all", "pods", "pods", "all"]),
    "not more often than every other second": ((0, 1, 2, 3), True, ["all", "pods"]),
}


@pytest.mark.parametrize("sentence", LOOKS)
def test_measurements(sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    times, moving, expected = LOOKS[sentence]
    asked: list[str] = []

    def source(name: str) -> Any:
        async def answer(*_: Any) -> Measured:
            asked.append(name)
            return Measured()

        return answer

    monkeypatch.setattr(measuring, "measure", source("all"))
    monkeypatch.setattr(measuring, "look_at_pods", source("pods"))

    async def scenario() -> None:
        memory, taking = Memory(FleetLog("default/demo")), measuring.Measuring(cast(Sources, None), lambda: None)
        assert not memory.asked
        for after in times:
            await taking.refresh(fleet(), (), ClusterView(), memory, 1e9 + after, moving=moving)
            await asyncio.sleep(0)
        assert memory.asked

    asyncio.run(scenario())
    assert asked == expected
