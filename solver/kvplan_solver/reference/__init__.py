"""The model in cvxpy, one line per equation, bracketed by enumeration; for tests and ``kvplan verify``."""

from kvplan_solver.reference.search import Bracket, bracket

__all__ = ["Bracket", "bracket"]
