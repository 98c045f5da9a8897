"""`python -m e2e.agent`: run the agent of one process node until SIGTERM or SIGINT.

Inputs: a kubeconfig, the Node as a file, directories. Outputs: see `agent.py`; its own log goes to standard error.
"""

import argparse
import asyncio
import logging
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from e2e.agent import credentials, images
from e2e.agent.agent import Agent
from e2e.agent.api import Api, Object
from e2e.agent.settings import Settings
from e2e.agent.waiting import first_of

_TABLE = Path(__file__).with_name("images.yaml")


def main(argv: Sequence[str]) -> int:
    """Run the agent that the command line describes; return the exit status."""
    options = _parse(argv)
    logging.basicConfig(format="%(asctime)s %(name)s %(message)s", level=logging.INFO, stream=sys.stderr)
    settings = Settings(
        root=options.root,
        logs=options.logs,
        images=images.read(options.images),
        back_off_scale=options.back_off_scale,
        lease_seconds=options.lease_seconds,
        renew_seconds=options.renew_seconds,
    )
    shutil.rmtree(settings.root, ignore_errors=True)  # what an agent that was killed has left
    settings.root.mkdir(mode=0o700, parents=True)
    settings.logs.mkdir(parents=True, exist_ok=True)
    try:
        asyncio.run(_serve(options.kubeconfig, yaml.safe_load(options.node.read_text()), settings))
    finally:
        shutil.rmtree(settings.root, ignore_errors=True)
    return 0


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m e2e.agent", description="runs the pods of one node as processes")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--node", type=Path, required=True, help="the Node to register (YAML)")
    parser.add_argument("--root", type=Path, required=True, help="directory for the pods' files; removed at the end")
    parser.add_argument("--logs", type=Path, required=True, help="directory for the containers' output")
    parser.add_argument("--images", type=Path, default=_TABLE, help="what runs for an image (YAML)")
    parser.add_argument("--back-off-scale", type=float, default=1.0, help="factor on the pauses before restarts")
    parser.add_argument("--lease-seconds", type=int, default=40)
    parser.add_argument("--renew-seconds", type=float, default=10.0)
    return parser.parse_args(argv)


async def _serve(kubeconfig: Path, node: Object, settings: Settings) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    api = Api(credentials.read(kubeconfig))
    try:
        await first_of(Agent(api, node, settings).run(), stopped.wait())
    finally:
        await api.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
