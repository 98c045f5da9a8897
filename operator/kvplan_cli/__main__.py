"""``python -m kvplan_cli`` is ``kvplan``."""

from kvplan_cli.main import run

run()
