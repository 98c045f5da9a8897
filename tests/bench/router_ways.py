"""Ways for a request to find its destination, side by side, and how a load goes through each of them.

In: ways. Out: rounds. All ways stand at once, idle ones cost next to nothing, and they take turns, so that a
busy minute of the machine meets all of them. Must not judge: that is each table's.
"""

import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from statistics import median
from typing import Any

from e2e.harness.errors import BuildFailed
from e2e.router.filters import behave_like, ext_proc
from e2e.router.tables import ClassPolicy
from tests.bench.data_plane import Plane, as_it_is, ask_nobody, plane
from tests.bench.endpoint_picker import PICKER, found_parts, start_picker
from tests.bench.wrk import KEY_FIELD, Answered, Load, run

SMALL, LARGE = 2_000, 220_000
VLLM_ROUTER = "vllm-router==0.1.17"
_HOME = Path(__file__).parents[2] / ".cache" / "bench" / VLLM_ROUTER.replace("==", "-")
_INSTALL_SECONDS = 120
_MICRO = 1e6


@dataclass(frozen=True)
class Pace:
    """How long to look.

    Attributes:
        rounds: of every way; a figure is their median.
        seconds: of one round.
        swaps: of tables.
        streams: held open.
        idle_seconds: of an idle router.
        keys: of the large table.
    """

    rounds: int = 3
    seconds: int = 2
    swaps: int = 20
    streams: int = 10_000
    idle_seconds: int = 5
    keys: int = 1_000_000


FULL = Pace()
QUICK = Pace(rounds=1, seconds=1, swaps=3, streams=200, idle_seconds=2, keys=20_000)
"""Whether everything works; its figures say nothing."""


@dataclass(frozen=True)
class Way:
    """One way for a request to find its destination.

    Attributes:
        name: in the tables.
        start: what stands between client and destinations.
    """

    name: str
    start: Callable[[Plane], None]


@dataclass(frozen=True)
class Round:
    """One run of a load.

    Attributes:
        answered: as the client saw it.
        micros: CPU microseconds per request, by role.
        unplanned: requests that went on without a decision.
    """

    answered: Answered
    micros: dict[str, float]
    unplanned: int

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.answered.requests / self.answered.seconds


Rounds = dict[str, list[Round]]
"""By the name of the way."""


def follow_no_retries(document: dict[str, Any]) -> None:
    """One message less per request: the head of an answer is not shown to the router."""
    ext_proc(document)["processing_mode"]["response_header_mode"] = "SKIP"


def plain(workers: int = 1) -> Way:
    """Envoy that asks nobody and balances by itself."""

    def start(made: Plane) -> None:
        made.write_endpoints()
        made.start_envoy(ask_nobody, workers)

    return Way("Envoy alone", start)


def look_up(transport: str) -> Way:
    """A transport whose decision is one look-up."""

    def start(made: Plane) -> None:
        made.start_look_up(transport)
        made.start_envoy()

    return Way(f"look-up, {transport}", start)


def routed(transport: str, name: str = "", edit: Callable[[dict[str, Any]], None] = as_it_is, workers: int = 1) -> Way:
    """The whole router; keys are in a header."""

    def start(made: Plane) -> None:
        made.start_router(transport)
        made.start_envoy(edit, workers)

    return Way(f"router, {transport}{name}", start)


def routed_by_body(transport: str) -> Way:
    """The whole router behind a gateway in full duplex; keys are in the body."""

    def start(made: Plane) -> None:
        rules = ({"kind": "field", "name": KEY_FIELD},)
        made.publish(replace(made.table, classes=(ClassPolicy(key_rules=rules),)))
        made.start_router(transport)
        made.start_envoy(lambda document: behave_like("full duplex requests", document))

    return Way(f"router, {transport}, key in the body", start)


class NotInstalled(Exception):
    """A peer that cannot be measured here, and why."""


def vllm(policy: str) -> Way:
    """The vLLM project's router.

    Raises:
        NotInstalled: the package index does not give it.
    """
    command = _vllm_router()
    return Way(f"{VLLM_ROUTER.replace('==', ' ')}, {policy}", lambda made: made.start_vllm_router(command, policy))


def _vllm_router() -> Path:
    """The installed command; in an environment of its own, because its dependencies are not ours."""
    command = _HOME / "bin" / "vllm-router"
    if command.exists():
        return command
    try:
        subprocess.run([sys.executable, "-m", "venv", str(_HOME)], check=True, capture_output=True)
        argv = [str(_HOME / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", VLLM_ROUTER]
        subprocess.run(argv, check=True, capture_output=True, text=True, timeout=_INSTALL_SECONDS)
    except subprocess.SubprocessError as error:
        rmtree(_HOME, ignore_errors=True)
        said = str(getattr(error, "stderr", "") or error).strip().splitlines()[-1:]
        raise NotInstalled(f"{VLLM_ROUTER} left out, it could not be installed: {' '.join(said)}") from error
    return command


def picker(workers: int = 1) -> Way:
    """The Inference Extension's endpoint picker.

    Raises:
        NotInstalled: it does not build.
    """
    try:
        return Way(PICKER, partial(start_picker, found_parts(), workers))
    except BuildFailed as error:
        raise NotInstalled(f"{PICKER} left out: {error}") from error


def peers(*policies: str, workers: int = 1) -> tuple[tuple[Way, ...], str]:
    """The vLLM project's router by policy and the endpoint picker, and a line that says which are missing and why."""
    found, missing = [], []
    makers = [*(partial(vllm, policy) for policy in policies), partial(picker, workers)]
    for make in makers:
        try:
            found.append(make())
        except NotInstalled as why:
            missing.append(f"{why}\n")
    return tuple(found), "".join(dict.fromkeys(missing))


def standing(stack: ExitStack, ways: Iterable[Way]) -> dict[str, Plane]:
    """All ways, started and warm."""
    return {way.name: started(stack, way) for way in ways}


def started(stack: ExitStack, way: Way) -> Plane:
    """One way, started: its connections are open, its code paths warm."""
    made = stack.enter_context(plane())
    way.start(made)
    run(made.urls[0], Load(SMALL, seconds=1))
    return made


def rounds_of(planes: dict[str, Plane], load: Load, rounds: int) -> Rounds:
    """The rounds of every way; the ways take turns."""
    found: Rounds = {name: [] for name in planes}
    for _ in range(rounds):
        for name, made in planes.items():
            found[name].append(_round(made, load))
    return found


def _round(made: Plane, load: Load) -> Round:
    before, unplanned = made.cpu_seconds(), made.unplanned()
    answered = run(made.urls[0], load)
    after = made.cpu_seconds()
    micros = {role: (after[role] - before[role]) / max(1, answered.requests) * _MICRO for role in after}
    return Round(answered, micros, made.unplanned() - unplanned)


def micros(rounds: list[Round], role: str) -> float:
    """CPU of a request in one role, microseconds; 0 where there is none."""
    return median(r.micros.get(role, 0.0) for r in rounds)


def counted(rounds: list[Round]) -> dict[str, str]:
    """Columns that every table of loads has."""
    return {
        "requests/s": f"{median(r.rate for r in rounds):,.0f}",
        "failed": str(sum(r.answered.failed for r in rounds)),
        "unplanned": str(sum(r.unplanned for r in rounds)),
    }
