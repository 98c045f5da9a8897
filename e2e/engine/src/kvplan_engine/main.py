"""The command ``kvplan-engine``: read the command line, build the engine, live.

Exit codes are vLLM's: 2 for a flag that is unknown or cannot be read, 1 where the engine cannot start.
"""

import asyncio
import logging
import os
import sys

from kvplan_engine.arguments.parser import parse
from kvplan_engine.core.sizing import DoesNotFit
from kvplan_engine.server.life import live
from kvplan_engine.settings import settings_of


def run() -> None:
    """Entry point of the console script."""
    sys.exit(main(sys.argv[1:]))


def main(argv: list[str]) -> int:
    """Run a server until it is told to stop; returns the exit code."""
    logging.basicConfig(format="%(levelname)s %(message)s", level=logging.INFO, stream=sys.stderr)
    flags = parse(argv, os.environ)
    try:
        settings = settings_of(flags)
        asyncio.run(live(settings))
    except (ValueError, DoesNotFit, OSError) as why:
        print(f"kvplan-engine: {why}", file=sys.stderr)
        return 1
    return 0
