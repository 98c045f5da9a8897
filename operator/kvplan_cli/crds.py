"""Writes ``crds/*.yaml``, or checks them: ``python -m kvplan_cli.crds [--check] DIRECTORY``.

``make crds`` runs the first, ``make check`` the second. The text comes from ``kvplan_operator.api.crdgen``; this
module only touches files. A file is replaced as a whole, so that an interrupted run leaves no half-written one.
"""

import sys
from pathlib import Path

from kvplan_operator.api.crdgen import crd_files

USAGE = "usage: python -m kvplan_cli.crds [--check] DIRECTORY"
REMEDY = "run `make crds`"


def write_crds(directory: Path) -> list[Path]:
    """Write one file per kind into ``directory``, which is made if missing; returns their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    return [_replace(directory / name, text) for name, text in crd_files().items()]


def differing_crds(directory: Path) -> list[str]:
    """One line per file that is missing, not the generated one, or of no kind; empty where all are as generated."""
    wanted = {directory / name: text for name, text in crd_files().items()}
    lines = [f"{path}: {problem}: {REMEDY}" for path, text in wanted.items() if (problem := _difference(path, text))]
    strangers = sorted(set(directory.glob("*.yaml")) - set(wanted))
    return lines + [f"{path}: it belongs to no kind: remove it" for path in strangers]


def _difference(path: Path, text: str) -> str:
    if not path.is_file():
        return "it is missing"
    return "" if path.read_bytes() == text.encode() else "it differs from the API types"


def _replace(path: Path, text: str) -> Path:
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text, encoding="utf-8")
    return fresh.replace(path)


def main(arguments: list[str]) -> int:
    """Entry point: 0 written or unchanged, 1 a checked file differs, 2 bad usage or an unusable directory."""
    checking = arguments[:1] == ["--check"]
    paths = arguments[1:] if checking else arguments
    if len(paths) != 1 or paths[0].startswith("-"):
        sys.stderr.write(f"{USAGE}\n")
        return 2
    try:
        return _check(Path(paths[0])) if checking else _write(Path(paths[0]))
    except OSError as error:
        wanted = "read" if checking else "written"
        sys.stderr.write(f"crds: {paths[0]}: {error.strerror}: give a directory that can be {wanted}\n")
        return 2


def _check(directory: Path) -> int:
    lines = differing_crds(directory)
    sys.stderr.writelines(f"crds: {line}\n" for line in lines)
    return 1 if lines else 0


def _write(directory: Path) -> int:
    sys.stdout.writelines(f"{path}\n" for path in write_crds(directory))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
