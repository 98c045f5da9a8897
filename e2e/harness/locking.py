"""Files and directories that appear whole or not at all, and work that one process does for all.

Inputs: paths on one local file system. A lock is released by the kernel when its holder ends, however it ends.
"""

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def exclusive(lock: Path) -> Iterator[None]:
    """Hold the lock file; other processes and threads that want it wait."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def replace_directory(final: Path) -> Iterator[Path]:
    """Yield an empty directory that becomes `final` when the block ends well, and vanishes otherwise."""
    with tempfile.TemporaryDirectory(prefix=f".{final.name}-", dir=final.parent) as scratch:
        filled = Path(scratch) / "filled"
        filled.mkdir()
        yield filled
        shutil.rmtree(final, ignore_errors=True)
        filled.rename(final)
