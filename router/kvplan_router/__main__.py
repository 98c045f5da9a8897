"""``python -m kvplan_router``."""

import sys

from kvplan_router.main import run

if __name__ == "__main__":
    sys.exit(run())
