"""Entry point of the scripts ``kvplan`` and ``kubectl-kvplan``.

It loads nothing itself, so that Ctrl-C ends quietly even while the libraries are still loading.
"""

import sys

INTERRUPTED = 130


def run() -> None:
    """Run the program and leave with its exit code."""
    try:
        from kvplan_cli.app import app  # noqa: PLC0415  see above
        from kvplan_cli.streams import show_what_can_be_shown  # noqa: PLC0415

        show_what_can_be_shown()
        app()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
