"""Algorithm 1 of the BCD-DRO paper as printed, for comparison: a file per block (02-solver §3)."""

from kvplan_solver.literal.method import solve_literal

__all__ = ["solve_literal"]
