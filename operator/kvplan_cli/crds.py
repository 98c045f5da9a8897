"""Writes ``crds/*.yaml``: ``python -m kvplan_cli.crds DIRECTORY`` (what ``make crds`` runs).

The text comes from ``kvplan_operator.api.crdgen``; this module only touches files. A file is replaced as a
whole, so that an interrupted run leaves no half-written one.
"""

import sys
from pathlib import Path

from kvplan_operator.api.crdgen import crd_files

USAGE = "usage: python -m kvplan_cli.crds DIRECTORY"


def write_crds(directory: Path) -> list[Path]:
    """Write one file per kind into ``directory``, which is made if missing; returns their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    return [_replace(directory / name, text) for name, text in crd_files().items()]


def _replace(path: Path, text: str) -> Path:
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text, encoding="utf-8")
    return fresh.replace(path)


def main(arguments: list[str]) -> int:
    """Entry point: exit code 0 when written, 2 when the directory is missing or cannot be written."""
    if len(arguments) != 1:
        sys.stderr.write(f"{USAGE}\n")
        return 2
    try:
        written = write_crds(Path(arguments[0]))
    except OSError as error:
        sys.stderr.write(f"crds: {arguments[0]}: {error.strerror}: give a directory that can be written\n")
        return 2
    sys.stdout.writelines(f"{path}\n" for path in written)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
