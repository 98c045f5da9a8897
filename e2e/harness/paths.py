"""Where the bed finds its sources and keeps what it builds.

Inputs: the repository layout and two environment variables. Outputs: paths. It creates nothing.
`KVPLAN_E2E_CACHE` moves the cache of built binaries, `TMPDIR` the run directories.
"""

import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
E2E = REPOSITORY / "e2e"
MODULES = E2E / "controlplane"
STAGES = E2E / "nodes" / "stages"
CRDS = REPOSITORY / "crds"
SAMPLES = REPOSITORY / "manifests" / "samples"
_MEMORY = Path("/dev/shm")  # noqa: S108 - the one place Linux mounts a tmpfs that every user may write to
_MEMORY_NEEDED = 512 * 2**20


def cache() -> Path:
    """Return the directory of built binaries, which outlives runs and is never committed."""
    default = REPOSITORY / ".cache" / "controlplane"
    return Path(os.environ.get("KVPLAN_E2E_CACHE", default)).absolute()


def memory_directory() -> Path | None:
    """Return a directory in memory with 512 MiB to spare for etcd, or None where there is none."""
    if not os.access(_MEMORY, os.W_OK | os.X_OK):
        return None
    free = os.statvfs(_MEMORY)
    return _MEMORY if free.f_bavail * free.f_frsize >= _MEMORY_NEEDED else None
