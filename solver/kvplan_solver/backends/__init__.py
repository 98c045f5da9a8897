"""The only importers of a solver library: HiGHS for the methods, cvxpy for the reference."""
