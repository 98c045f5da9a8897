"""What a decision costs: Envoy asking the router, against Envoy that asks nobody, in one run on one machine.

``python -m tests.bench.bench_router [--quick] [PART …]`` prints the parts named, or all; ``--quick`` only shows that
they work. Needs ``wrk``, the native extension and, for the peer's rows, a package index; without one they are left out.
"""

import argparse
import shutil
from collections.abc import Callable, Iterable
from importlib.util import find_spec

from kvplan_router.transport.choice import EXTENSION
from tests.bench.router_at_rest import at_rest
from tests.bench.router_costs import costs, delays, throughput
from tests.bench.router_decision import decision
from tests.bench.router_streams import streams
from tests.bench.router_swaps import swaps
from tests.bench.router_ways import FULL, QUICK, Pace

PARTS: dict[str, Callable[[Pace], str]] = {
    "decision": decision,
    "costs": costs,
    "throughput": throughput,
    "delays": delays,
    "swaps": swaps,
    "streams": streams,
    "rest": at_rest,
}


def section(parts: Iterable[str] = PARTS, pace: Pace = FULL) -> str:
    """All tables."""
    if shutil.which("wrk") is None:
        return "Skipped: `wrk` is not installed.\n"
    if find_spec(EXTENSION) is None:
        return "Skipped: the native extension is not built (`make setup`, cargo 1.88 or newer).\n"
    return "\n".join(PARTS[part](pace) for part in parts)


def main() -> None:
    """Print parts as they are done."""
    parser = argparse.ArgumentParser(prog="bench_router", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="only show that the parts work")
    given = parser.parse_args()
    unknown = sorted(set(given.parts) - set(PARTS))
    if unknown:
        parser.error(f"no part {', '.join(unknown)}: use {', '.join(PARTS)}")
    for part in given.parts or PARTS:
        print(section([part], QUICK if given.quick else FULL), flush=True)


if __name__ == "__main__":
    main()
