"""Write the files of a volume so that a reader sees all of the old ones or all of the new ones, as the kubelet does.

Inputs: a directory and files. The files are in a directory of their own; `..data` is a symbolic link to it, changed by
one rename; every name at the top is a link through `..data`. Programs that watch `..data` work as in a cluster.
"""

import shutil
import tempfile
from pathlib import Path, PurePosixPath

from e2e.agent.content import Files

_CURRENT = "..data"


def write(directory: Path, files: Files) -> None:
    """Replace the volume's files.

    Raises:
        ValueError: when a name leads out of the volume.
    """
    directory.mkdir(parents=True, exist_ok=True)
    before = _current(directory)
    generation = Path(tempfile.mkdtemp(prefix="..", dir=directory))
    for name, file in files.items():
        _write_file(generation, name, file.content, file.mode)
    _link(directory / _CURRENT, generation.name)
    _link_names(directory, {PurePosixPath(name).parts[0] for name in files})
    if before is not None:
        shutil.rmtree(before)


def _current(directory: Path) -> Path | None:
    link = directory / _CURRENT
    return directory / link.readlink() if link.is_symlink() else None


def _write_file(generation: Path, name: str, content: bytes, mode: int) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"file name {name!r} leads out of its volume: use a relative path without '..'")
    target = generation / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    target.chmod(mode)


def _link_names(directory: Path, names: set[str]) -> None:
    for name in sorted(names):
        _link(directory / name, f"{_CURRENT}/{name}")
    for entry in directory.iterdir():
        if entry.is_symlink() and entry.name != _CURRENT and entry.name not in names:
            entry.unlink()


def _link(link: Path, target: str) -> None:
    if link.is_symlink() and str(link.readlink()) == target:
        return
    new = link.with_name(f"..new-{link.name.lstrip('.')}")
    new.symlink_to(target)
    new.replace(link)
