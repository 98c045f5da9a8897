"""Writes ``crds/*.yaml``, or checks them: ``python -m kvplan_cli.crds [--check] DIRECTORY``.

``make crds`` runs the first, ``make check`` the second. The text comes from ``kvplan_operator.api.crdgen``; this
module only touches files.
"""

import sys

from kvplan_cli.generated import Generated, Pages
from kvplan_operator.api.crdgen import crd_files

PAGES = Pages("*.yaml", crd_files, "it differs from the API types", "it belongs to no kind", "run `make crds`")
GENERATED = Generated("crds", "DIRECTORY", PAGES.write, PAGES.differing)


def main(arguments: list[str]) -> int:
    """Entry point; see ``Generated.run``."""
    return GENERATED.run(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
