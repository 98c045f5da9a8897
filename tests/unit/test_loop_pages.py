"""The demonstration's screen and its page, from values."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from e2e.loop.asking import Asked, End, Ended
from e2e.loop.load import Tally
from e2e.loop.measures import Measures
from e2e.loop.report import Phase, write
from e2e.loop.scene import ClassScene, Condition, Scene, Slot
from e2e.loop.view import view

pytest.importorskip("matplotlib")

SCENE = Scene(
    plan="assistants-0123456789",
    generation=7,
    keys=19,
    nodes={"gpu-node-1": (Slot("tp8-0", 3_424, 26_133, "serving"),), "gpu-node-2": ()},
    classes=(ClassScene("chat", 6.2, 3_424, (("tp8", 1000),), 120, 1, 0, 0),),
    conditions=(Condition("Ready", "True", "AsPlanned", "all is well"), Condition("Contended", "False", "Fine", "")),
    hit_rate=0.31,
    preemptions=2.0,
    load_ratio=1.2,
    open=5,
)
MEASURES = Measures(500.0, 1.0, 2.5, 0.2, 0.3, 4.0, 1.5, 0.4)


def tally(*ends: End) -> Tally:
    counted = Tally()
    for end in ends:
        counted.add(Ended(Asked("chat", "Why?", 1), end, 0.0, 1.0, detail="" if end is End.WHOLE else end.value))
    return counted


def test_the_screen_has_the_plan_the_groups_the_figures_and_the_conditions() -> None:
    console = Console(width=120)
    with console.capture() as captured:
        console.print(view(SCENE, "traffic shifts"))
    shown = captured.get()
    for words in ("traffic shifts", "assistants-0123456789", "tp8-0 3,424/26,133 serving", "no group", "tp8 100 %"):
        assert words in shown
    assert "prefix hits 31%" in shown
    assert "Ready=True AsPlanned" in shown
    assert "Contended" not in shown


def test_the_page_tells_losses_too_and_what_was_not_measured(tmp_path: Path) -> None:
    mix = {"chat": 4.0}
    stock = Phase("stock, morning", mix, replace(MEASURES, hit_rate=math.nan), tally(End.WHOLE), False, "6 × tp4")
    plan = Phase("plan, morning", mix, MEASURES, tally(End.WHOLE, End.SHED, End.FAILED, End.TRUNCATED), True, "3 × tp8")
    page = write(tmp_path / "out", [stock, plan], "generated <here>")
    text = page.read_text()
    assert "<td>prompt tokens found in a cache</td><td>-</td><td>30.0%</td>" in text
    assert "<td>refused with 429</td><td>0</td><td>1</td>" in text
    assert "<td>failed or cut short</td><td>0</td><td>2</td>" in text
    assert "generated &lt;here&gt;" in text
    assert (tmp_path / "out" / "report.png").read_bytes().startswith(b"\x89PNG")


def test_a_tally_keeps_what_went_wrong() -> None:
    counted = tally(End.WHOLE, End.SHED, End.WHOLE)
    assert (counted.total, counted.count(End.WHOLE), [one.end for one in counted.bad]) == (3, 2, [End.SHED])
