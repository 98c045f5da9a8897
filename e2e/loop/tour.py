"""`make tour`: a world to try things in. Starts it, says how to reach it, and waits for Ctrl-C or SIGTERM.

Inputs: none. Outputs: the variables that a shell needs, to be pasted. Everything is gone when it ends. docs/tour.md has
the commands to try in it; `test_tour.py` runs them all.
"""

import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import yaml

from e2e.harness.assets import binary
from e2e.harness.errors import BedError
from e2e.harness.prometheus_binary import prometheus_binary
from e2e.loop.looking import ROUTERS
from e2e.loop.manifests import GATEWAY_PORT
from e2e.loop.world import NAMESPACE, Progress, World

PROGRAMS = Path(sys.executable).parent
"""Where `kvplan` and `kubectl-kvplan` are."""
LAST_LINE, FAREWELL = "Ctrl-C stops and removes everything", "stopped; nothing is left running"


def main() -> int:
    """Run the world until it is told to stop; return the exit status."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell started it in the background
    signal.signal(signal.SIGTERM, _stop)
    try:
        binary("kube-apiserver")  # a build is no part of the start
        prometheus_binary()
        _serve()
    except KeyboardInterrupt:
        print(f"\n{FAREWELL}", flush=True)
    except BedError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _serve() -> None:
    started = time.monotonic()
    with surroundings(lambda what: print(f"starting {what}", flush=True)) as exports:
        print(f"ready after {time.monotonic() - started:.0f} s; paste this into another shell:")
        for name, value in exports.items():
            print(f"export {name}={value}")
        print(LAST_LINE, flush=True)
        signal.pause()


@contextmanager
def surroundings(tell: Progress) -> Iterator[Mapping[str, str]]:
    """The variables of a shell in a world that runs as long as the block.

    Args:
        tell: of the progress.
    """
    with TemporaryDirectory(prefix="kvplan-tour-") as directory, World(routers=1, tell=tell) as world:
        yield {
            "KUBECONFIG": str(_kubeconfig(world, Path(directory))),
            "PATH": f"{binary('kubectl').parent}:{PROGRAMS}:$PATH",
            "ENVOY": _envoy(world),
        }


def _kubeconfig(world: World, directory: Path) -> Path:
    """An administrator's, whose namespace is the fleet's."""
    config = yaml.safe_load(world.cluster.kubeconfig.read_text())
    config["contexts"][0]["context"]["namespace"] = NAMESPACE
    file = directory / "kubeconfig"
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(config))
    return file


def _envoy(world: World) -> str:
    """URL of the Envoy; its pod is Ready once a fleet has a table."""
    world.wait_for("pod", "--for=jsonpath={.status.podIP}", 60, ROUTERS)
    (pod,) = world.get("pods", ROUTERS)["items"]
    return f"http://{pod['status']['podIP']}:{GATEWAY_PORT}"


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
