"""``python -m kvplan_engine``."""

from kvplan_engine.main import run

run()
