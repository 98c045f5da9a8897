"""`make demo`: from `kubectl apply` to a re-partition under load, and what it was good for.

Inputs: a directory for the report. Outputs: a live view on a terminal, lines elsewhere; `report.html` and `report.png`.
Ctrl-C ends every process and leaves nothing but the report.
"""

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.live import Live

from e2e.harness.assets import binary
from e2e.harness.errors import BedError
from e2e.harness.prometheus_binary import prometheus_binary
from e2e.loop import looking, manifests, report, stock, traffic
from e2e.loop.gateways import following
from e2e.loop.load import Load, Mix
from e2e.loop.measures import Period
from e2e.loop.report import Phase
from e2e.loop.scene import Observer, Scene
from e2e.loop.shapes import Shape
from e2e.loop.view import view
from e2e.loop.world import NAMESPACE, PLACE, World
from kvplan_operator.kube.client import Client

MORNING: Mix = {"chat": 4.0, "code": 3.0, "summarise": 1.0}
EVENING: Mix = {"chat": 14.0, "code": 1.0, "summarise": 2.5}
"""Before and after the shift of traffic; three large groups serve the first, and not the second."""
STOCK_CONFIGURATION, STOCK_GROUPS = "tp4", 6
PHASE_SECONDS = 24.0
READING = {"SAMPLE_MILLI": "500"}
"""Of the answers the routers read half, where they would read one in fifty: minutes stand for hours here."""
PATIENCE_SECONDS = 240.0
LOOK_SECONDS = 2.0


@dataclass
class Stage:
    """What the parts of the demonstration share."""

    world: World
    observer: Observer
    shapes: Mapping[str, Shape]
    model: str
    console: Console
    caption: str = ""

    def tell(self, caption: str) -> None:
        """Say what happens now."""
        self.caption = caption
        if not self.console.is_terminal:
            self.console.print(f"{time.strftime('%H:%M:%S')} {caption}")


def main(argv: Sequence[str]) -> int:
    """Run the demonstration; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m e2e.loop.demo", description="the whole of kvplan on one machine")
    parser.add_argument("--out", type=Path, default=Path("out/demo"), help="directory for the report")
    options = parser.parse_args(argv)
    console = Console()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell started it in the background
    signal.signal(signal.SIGTERM, _stop)
    try:
        binary("kube-apiserver")
        prometheus_binary()
        with console.status("") as status:
            began, tell = time.monotonic(), (lambda what: status.update(f"starting {what}"))
            telling = tell if console.is_terminal else console.print
            with World(tell=telling, router_settings=READING) as world:
                status.stop()
                console.print(f"everything runs after {time.monotonic() - began:.0f} s")
                page = asyncio.run(_demonstrate(world, console, options.out))
        console.print(f"report: {page}")
    except KeyboardInterrupt:
        console.print("stopped; nothing is left running")
    except BedError as error:
        console.print(str(error))
        return 1
    return 0


async def _demonstrate(world: World, console: Console, out: Path) -> Path:
    shapes, source = await asyncio.to_thread(traffic.shapes)
    stage = Stage(world, Observer(world), shapes, manifests.sample("fleet")[0]["spec"]["model"]["name"], console)
    console.print(f"traffic: {source}")
    phases = await _without_kvplan(stage)
    phases += await _with_kvplan(stage)
    return report.write(out, phases, source)


async def _without_kvplan(stage: Stage) -> list[Phase]:
    """The same GPUs by stock flags and round-robin."""
    world = stage.world
    stage.tell("for comparison: engines with stock flags, clients take them in turn")
    await asyncio.to_thread(world.apply, stock.deployment(STOCK_CONFIGURATION, STOCK_GROUPS))
    await asyncio.to_thread(world.wait_for, f"deployment/{stock.NAME}", "--for=condition=Available", 60)
    turn, urls = count(), await asyncio.to_thread(_stock_urls, world)
    phases = []
    async with Load(lambda: urls[next(turn) % len(urls)], stage.shapes, MORNING, stage.model) as load:
        for name, mix in (("stock, morning", MORNING), ("stock, evening", EVENING)):
            stage.tell(f"{name}: {PHASE_SECONDS:.0f} s")
            phases.append(await _phase(stage, load, name, mix, f"{STOCK_GROUPS} × {STOCK_CONFIGURATION}"))
    stage.tell("the comparison ends")
    delete = ("delete", "deployment", stock.NAME, PLACE, "--cascade=foreground", "--timeout=90s")
    await asyncio.to_thread(world.cluster.kubectl, *delete)
    return phases


async def _with_kvplan(stage: Stage) -> list[Phase]:
    """The plan, the shift of traffic, the re-partition."""
    world = stage.world
    stage.tell("kubectl apply: a fleet in Auto mode and three classes")
    await asyncio.to_thread(world.apply, *manifests.sample("fleet"), *manifests.sample("classes"))
    client = await Client.connect(world.cluster.kubeconfig)
    try:
        async with following(client, NAMESPACE) as gateways:
            await _until(gateways.urls, "a router is Ready")
            async with Load(gateways.next, stage.shapes, MORNING, stage.model) as load, _shown(stage, load):
                return await _two_mixes(stage, load)
    finally:
        await client.close()


async def _two_mixes(stage: Stage, load: Load) -> list[Phase]:
    stage.tell("routers count requests, the operator plans from what they count")
    await _until(lambda: looking.condition(stage.world, "Ready")[1] == "AsPlanned", "the first plan")
    first = await asyncio.to_thread(_groups, stage.world)
    stage.tell(f"the plan is in force ({first}): {PHASE_SECONDS:.0f} s")
    phases = [await _phase(stage, load, "plan, morning", MORNING, first)]
    load.mix = EVENING
    stage.tell("traffic shifts: chats triple; another partition will be worth a change")
    await _until(lambda: _groups(stage.world) != first, "another plan")
    stage.tell("the fleet is partitioned anew, group by group, no GPU to spare, no request lost")
    await _until(lambda: looking.condition(stage.world, "Ready")[1] == "AsPlanned", "the new plan in force")
    second = await asyncio.to_thread(_groups, stage.world)
    stage.tell(f"the new plan is in force ({second}): {PHASE_SECONDS:.0f} s")
    phases.append(await _phase(stage, load, "plan, evening", EVENING, second))
    return phases


async def _phase(stage: Stage, load: Load, name: str, mix: Mix, groups: str) -> Phase:
    """Measure one stretch of traffic."""
    load.mix = mix
    load.begin_tally()
    begin = time.time()
    await asyncio.sleep(PHASE_SECONDS)
    measures = await asyncio.to_thread(stage.observer.measures, Period(begin, time.time()))
    tally = load.tally
    load.begin_tally()  # what comes between two phases belongs to neither
    return Phase(name, mix, measures, tally, name.startswith("plan"), groups)


@asynccontextmanager
async def _shown(stage: Stage, load: Load) -> AsyncIterator[None]:
    """The live view while the block runs; on no terminal, nothing but the captions."""
    if not stage.console.is_terminal:
        yield
        return
    with Live(console=stage.console, auto_refresh=False) as live:
        drawing = asyncio.create_task(_draw(stage, load, live))
        try:
            yield
        finally:
            drawing.cancel()
            await asyncio.wait({drawing})


async def _draw(stage: Stage, load: Load, live: Live) -> None:
    while True:
        scene: Scene = await asyncio.to_thread(stage.observer.scene, load.tally, len(load.open))
        live.update(view(scene, stage.caption), refresh=True)
        await asyncio.sleep(LOOK_SECONDS)


async def _until(check: Callable[[], object], what: str) -> None:
    """Wait, while the load goes on, until something holds.

    Raises:
        BedError: it does not.
    """
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await asyncio.to_thread(check):
                await asyncio.sleep(LOOK_SECONDS / 2)
    except TimeoutError:
        raise BedError(f"{what} did not come within {PATIENCE_SECONDS:.0f} s") from None


def _stock_urls(world: World) -> list[str]:
    pods = world.get("pods", f"--selector={stock.SELECTOR}")["items"]
    return [f"http://{pod['status']['podIP']}:{stock.PORT}" for pod in pods]


def _groups(world: World) -> str:
    """The plan in force in words: `2 × tp4, 2 × tp8`."""
    plan = looking.in_force(world)
    groups = plan["spec"]["groups"] if plan else ()
    return ", ".join(f"{len(group['placements'])} × {group['configuration']}" for group in groups)


def _stop(_number: int, _frame: FrameType | None) -> None:
    """End as Ctrl-C does: a running event loop then cancels its tasks in order."""
    signal.raise_signal(signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
