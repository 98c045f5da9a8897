"""Writes ``crds/*.yaml``, or checks them: ``python -m kvplan_cli.crds [--check] DIRECTORY``.

``make crds`` runs the first, ``make check`` the second. The text comes from ``kvplan_operator.api.crdgen``; this
module only touches files.
"""

import sys
from pathlib import Path

from kvplan_cli.generated import Generated, replace_file
from kvplan_operator.api.crdgen import crd_files

REMEDY = "run `make crds`"


def write_crds(directory: Path) -> list[Path]:
    """Write one file per kind into ``directory``, which is made if missing; returns their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    return [replace_file(directory / name, text) for name, text in crd_files().items()]


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


GENERATED = Generated("crds", "DIRECTORY", write_crds, differing_crds)


def main(arguments: list[str]) -> int:
    """Entry point; see ``Generated.run``."""
    return GENERATED.run(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
