"""A thin typed door to cvxpy for the reference model. Only importer of cvxpy.

Purpose: a vocabulary small enough that an equation of the paper is one line of Python. Solves with the dual
simplex that SciPy bundles: vertices, and no interior-point residue in the bounds. Must not know
anything about fleets.
"""

from typing import Any

import cvxpy
import numpy as np
from numpy.typing import NDArray

from kvplan_solver.errors import BackendError

cp: Any = cvxpy  # its types are partial

Floats = NDArray[np.float64]
Expression = Any
"""An affine expression in variables; behaves like an array under +, −, ≤, ≥ and indexing."""
Constraint = Any

_SIMPLEX = {
    "method": "highs-ds",
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
}


def nonnegative(*shape: int) -> Expression:
    """A variable of this shape, at least 0."""
    return cp.Variable(shape, nonneg=True)


def total(expression: Expression, axis: int | None = None) -> Expression:
    """Sum over one axis, or over all."""
    return cp.sum(expression, axis=axis)


def times(constant: Floats, expression: Expression) -> Expression:
    """Entry by entry product with constants of the same (or a broadcastable) shape."""
    return cp.multiply(constant, expression)


def minimise(objective: Expression, constraints: list[Constraint]) -> None:
    """Solve; the optimum is then in ``value`` of the variables.

    Raises:
        BackendError: no optimum was found.
    """
    problem = cp.Problem(cp.Minimize(objective), constraints)
    try:
        problem.solve(solver=cp.SCIPY, canon_backend=cp.SCIPY_CANON_BACKEND, scipy_options=_SIMPLEX)
    except cp.SolverError as error:
        raise BackendError(f"the linear program failed: {error}") from error
    if problem.status != cp.OPTIMAL:
        raise BackendError(f"the linear program ended with {problem.status}")


def value(variable: Expression) -> Floats:
    """The value of a variable at the last optimum."""
    return np.asarray(variable.value, dtype=np.float64)
