"""`make cluster`: a bed to look around in. Starts it, says how to reach it, and waits for Ctrl-C or SIGTERM.

Inputs: the number of nodes and whether Prometheus runs too. Outputs: text for a person; the first line of the block is
a command to paste. Everything is gone when it ends.
"""

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType

from e2e.harness.assets import binary
from e2e.harness.cluster import Cluster
from e2e.harness.errors import BedError
from e2e.harness.simulated_nodes import sample_nodes


def main(argv: Sequence[str]) -> int:
    """Run the bed until it is told to stop; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m e2e.harness.bed", description="a real control plane to try")
    parser.add_argument("--nodes", type=int, default=3, help="simulated nodes of eight GPUs (default 3)")
    parser.add_argument("--prometheus", action="store_true", help="start a Prometheus as well")
    options = parser.parse_args(argv)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell started it in the background
    signal.signal(signal.SIGTERM, _stop)
    try:
        _serve(options.nodes, options.prometheus)
    except KeyboardInterrupt:
        print("\nstopped", flush=True)
    except BedError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _serve(nodes: int, with_prometheus: bool) -> None:
    binary("kube-apiserver")  # a build is not part of the start
    started = time.monotonic()
    with Cluster(sample_nodes(nodes)) as cluster:
        cluster.install_crds()
        print(f"ready after {time.monotonic() - started:.1f} s: {nodes} nodes of 8 GPUs, kvplan's CRDs installed")
        print(f"export KUBECONFIG={cluster.kubeconfig}")
        print(f"kubectl: {binary('kubectl')}")
        if with_prometheus:
            print(f"Prometheus: {cluster.start_prometheus()}")
        print("Ctrl-C stops and removes everything", flush=True)
        signal.pause()


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
