"""Writes ``docs/reference``, or checks it: ``python -m kvplan_cli.reference [--check] DIRECTORY``.

``make crds`` runs the first, ``make check`` the second. This module only touches files.
"""

import sys

from kvplan_cli.generated import Generated, Pages
from kvplan_cli.reference.api import api_page
from kvplan_cli.reference.router_metrics import router_metrics_page
from kvplan_cli.reference.settings import settings_page


def reference_pages() -> dict[str, str]:
    """File name to text, for every page."""
    return {"api.md": api_page(), "settings.md": settings_page(), "router-metrics.md": router_metrics_page()}


PAGES = Pages("*.md", reference_pages, "it differs from the code", "it is no page of the reference", "run `make crds`")
GENERATED = Generated("reference", "DIRECTORY", PAGES.write, PAGES.differing)


def main(arguments: list[str]) -> int:
    """Entry point; see ``Generated.run``."""
    return GENERATED.run(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
