"""Regenerate the snapshot of hardware priors: ``python -m kvplan_cli.priors_snapshot``.

Purpose: write the data file that the package ships. Needs the extra ``kvplan[priors]``, no GPU, no network.
Output: ``snapshot.json`` in the installed package, or the file given by ``--output``.
Must not: leave a half-written file, or be needed by anything the planner runs.
"""

import argparse
import logging
import sys
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

LIBRARY_MODULE = "aiconfigurator_core"


def main(arguments: list[str] | None = None) -> int:
    """Write the snapshot; the exit code is 2 where the library is not installed."""
    parser = argparse.ArgumentParser(description="Regenerate the snapshot of hardware priors.")
    parser.add_argument("--output", type=Path, help="file to write (default: the package's own)")
    output = parser.parse_args(arguments).output or bundled_path()
    if find_spec(LIBRARY_MODULE) is None:
        sys.stderr.write("aiconfigurator-core is not installed: run pip install 'kvplan[priors]'\n")
        return 2
    from kvplan_cli.priors_document import build_document, render  # noqa: PLC0415 - needs the optional extra

    logging.disable(logging.WARNING)  # the library warns of tables that no target here reads
    document, skipped = build_document()
    _replace(output, render(document))
    sys.stdout.write("".join(f"left out: {line}\n" for line in skipped))
    sys.stdout.write(f"{output.name}: {len(document['profiles'])} profiles\n")
    return 0


def bundled_path() -> Path:
    """The data file inside the installed package."""
    return Path(str(resources.files("kvplan_operator.model.priors"))) / "data" / "snapshot.json"


def _replace(path: Path, text: str) -> None:
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)


if __name__ == "__main__":
    sys.exit(main())
