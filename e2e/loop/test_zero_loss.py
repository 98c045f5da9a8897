"""A fleet changes its partition there and back under load, on full GPUs, while its operator crashes and a router goes.

Counted by the clients: no request fails, none is cut short, none is refused. The operator dies once after every kind of
step in each direction; one of two routers is replaced on the way back. Undisturbed changes follow until enough requests
were sent. GPUs and reservations are summed from outside.
"""

import asyncio

import pytest

from e2e.loop.repartition import EVERY_KIND, Change, Outcome, outcome, scene
from e2e.loop.steps import BY_OPERATOR
from e2e.loop.world import World

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

REQUESTS = 10_000


def test_no_request_is_lost_while_a_full_fleet_changes_there_and_back(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    there, back, came = asyncio.run(there_and_back(world))
    with capsys.disabled():
        print("", *came.figures, sep="\n")
    assert came.faults == []
    assert set(there.crashed_after) >= EVERY_KIND
    assert set(back.crashed_after) >= EVERY_KIND


async def there_and_back(world: World) -> tuple[Change, Change, Outcome]:
    """Run the scenario: both disturbed changes, and what came of everybody."""
    async with scene(world) as at:
        before = await at.configurations()
        there = await at.change(at.many, BY_OPERATOR)
        assert await at.configurations() != before
        replacing = asyncio.create_task(at.replace_a_router())
        back = await at.change(at.few, BY_OPERATOR)
        await replacing
        changes = [there, back]
        while at.load.tally.total < REQUESTS:
            changes += [await at.change(digest, ()) for digest in (at.many, at.few)]
        assert await at.configurations() == before
    return there, back, outcome(at, changes)
