"""Tables replaced under load: good ones take effect at once, bad ones never, and no request notices."""

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from e2e.router.bed import Bed
from e2e.router.client import Client, Load, eventually
from kvplan_solver.cacheroute.table import write_index

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("calm")]


def refusals(bed: Bed) -> dict[str, int]:
    found: dict[str, int] = bed.state()["tableErrors"]
    return found


async def test_twenty_swaps_under_load_fail_no_request(bed: Bed) -> None:
    async with Client(bed) as client, Load(client, workers=6) as load:
        for turn in range(20):
            await asyncio.to_thread(bed.publish, bed.table.next(homes={"a": [turn % 2], f"key {turn}": [0, 1]}))
            await load.answered(20)
    assert set(load.statuses) == {200}
    assert load.statuses.total() >= 400


async def test_bad_tables_under_load_are_refused_by_reason_and_fail_no_request(bed: Bed) -> None:
    good = bed.table.text()
    changed = good.replace('"ColdTail"', '"Reject"')
    stale = replace(bed.table, generation=1).text()
    bad = {
        "IndexChecksum": [good[: len(good) // 2], changed, "", "{}"],
        "Oversized": [good + " " * 1_048_576],
        "Stale": [stale],
        "ConflictingGeneration": [replace(bed.table, homes={"other": [0]}).text()],
    }
    in_force = bed.order()
    async with Client(bed) as client, Load(client, workers=4) as load:
        for reason, texts in bad.items():
            for text in texts:
                before = refusals(bed).get(reason, 0)
                bed.publish_text(text)
                await eventually(bed, lambda r=reason, b=before: refusals(bed).get(r, 0) > b, f"{reason} counted")  # type: ignore[misc]
                await load.answered(20)
    assert set(load.statuses) == {200}
    assert bed.order() == in_force
    bed.publish(bed.table.next())


async def test_a_refusal_is_a_metric_with_its_reason(bed: Bed) -> None:
    bed.publish_text("no table")
    await eventually(bed, lambda: refusals(bed).get("IndexChecksum", 0) > 0, "a refusal")
    assert re.search(
        r'kvplan_router_table_refusals_total\{fleet="default/fleet",reason="IndexChecksum"\} [1-9]', bed.metrics()
    )
    assert f'kvplan_router_table_generation{{fleet="default/fleet"}} {float(bed.table.generation)}' in bed.metrics()


async def test_a_table_under_a_foreign_secret_is_refused(bed: Bed) -> None:
    document = json.loads(bed.table.next(homes={"a": [0]}).text())
    document["hash"]["fingerprint"] = "0" * 16
    bed.publish_text(write_index(document))
    await eventually(bed, lambda: refusals(bed).get("ForeignHash", 0) > 0, "ForeignHash counted")
    bed.publish(bed.table.next())


async def test_a_file_that_goes_away_leaves_the_table_in_force(bed: Bed) -> None:
    Path(bed.directory / "index.json").unlink()
    async with Client(bed) as client, Load(client) as load:
        await load.answered(200)
    assert set(load.statuses) == {200}
    bed.publish(bed.table.next())
