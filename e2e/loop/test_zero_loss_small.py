"""The small form of ``test_zero_loss``: one way, one crash of the operator, a few hundred requests; the same checks."""

import asyncio

import pytest

from e2e.loop.repartition import Change, Outcome, outcome, scene
from e2e.loop.steps import Kind
from e2e.loop.world import World

pytestmark = [pytest.mark.e2e, pytest.mark.smoke]

REQUESTS = 600


def test_no_request_is_lost_while_a_full_fleet_changes_and_its_operator_dies_in_a_drain(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    change, came = asyncio.run(there(world))
    with capsys.disabled():
        print("", *came.figures, sep="\n")
    assert came.faults == []
    assert change.crashed_after == (Kind.DRAIN,)


async def there(world: World) -> tuple[Change, Outcome]:
    """Run the scenario: the change, and what came of everybody."""
    async with scene(world) as at:
        before = await at.configurations()
        change = await at.change(at.many, {Kind.DRAIN})
        assert await at.configurations() != before
        await at.load.reach(REQUESTS)
    return change, outcome(at, [change])
