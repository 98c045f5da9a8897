"""Putting a plan in force: pure step planning, and the few writes that follow from it."""
