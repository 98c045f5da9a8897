"""One real vLLM server with the tiny model, as a process of the test.

Inputs: flags, a port. Output: its command; the address it will answer on. Start takes half a minute and 2 GB.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from e2e.harness.paths import REPOSITORY
from e2e.harness.process import Command

HOST = "127.0.0.1"
ENVIRONMENT: Mapping[str, str] = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_SERVER_DEV_MODE": "1",  # with /pause and /resume, so that a test decides when an engine begins
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # its default pins cores; several servers would fight over one
    "GLOO_SOCKET_IFNAME": "lo",
    "VLLM_HOST_IP": HOST,
    "PYTHONDONTWRITEBYTECODE": "",  # it compiles nothing twice only if it may write what it compiled
    "PYTHONPATH": str(REPOSITORY / "router"),  # where kvplan_vllm lies
}
FREE_MEMORY = "--gpu-memory-utilization=0.1"
"""On a CPU: the share of the machine's memory that must be free at the start."""
FLAGS = (
    "--load-format=dummy", "--enforce-eager", "--dtype=bfloat16", "--served-model-name=tiny", FREE_MEMORY,
    "--block-size=32",
)  # fmt: skip


def command(python: Path, model: Path, port: int, flags: Sequence[str], name: str = "vllm") -> Command:
    """The command line of a server."""
    server = [str(python), "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
    return Command(name, [*server, "--host", HOST, "--port", str(port), *FLAGS, *flags], ENVIRONMENT, grace_seconds=30)
