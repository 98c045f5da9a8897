"""The pure solver of kvplan: no clock, no network, no files, no randomness without a seed.

This package and ``kvplan_solver.cacheroute`` import nothing on their own, so that the router can use
``kvplan_solver.budget`` and ``kvplan_solver.cacheroute.table`` with the standard library alone.
"""
