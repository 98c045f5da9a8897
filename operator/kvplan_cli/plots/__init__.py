"""Figures of a plan. Builders take values and return a figure; only ``save`` touches files."""
