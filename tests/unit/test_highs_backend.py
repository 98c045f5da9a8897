"""The door to HiGHS: values, duals, kept models, limits and refusals."""

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from kvplan_solver.backends.highs import INFINITY, LinearProgram, SolveStatus
from kvplan_solver.errors import BackendError


def _diet() -> LinearProgram:
    """Min 2x + 3y, x + y ≥ 4, x ≤ 3: optimum x = 3, y = 1, cost 9."""
    program = LinearProgram(np.array([2.0, 3.0]), np.zeros(2), np.array([3.0, INFINITY]))
    program.add_dense_rows(np.array([4.0]), np.array([INFINITY]), np.ones((1, 2)))
    return program


def _knapsack(items: int = 30) -> LinearProgram:
    return _knapsack_rows(items, np.ones(items, dtype=np.bool_))


def _knapsack_rows(items: int = 30, integer: NDArray[np.bool_] | None = None) -> LinearProgram:
    rng = np.random.default_rng(7)
    worth, weights = rng.integers(10, 100, items).astype(float), rng.integers(5, 60, (8, items)).astype(float)
    program = LinearProgram(-worth, np.zeros(items), np.ones(items), integer)
    program.add_dense_rows(np.full(8, -INFINITY), weights.sum(axis=1) / 3, weights)
    return program


def test_an_optimum_comes_with_its_point_duals_and_bound() -> None:
    solution = _diet().solve()
    assert solution.optimal
    assert solution.feasible
    assert solution.values.tolist() == [3.0, 1.0]
    assert solution.objective == solution.bound == pytest.approx(9.0)
    assert solution.duals.tolist() == [3.0]  # one more unit of demand costs 3
    assert solution.reduced_costs.tolist() == [-1.0, 0.0]  # one more unit of x saves 1


def test_rows_in_compressed_form_and_dense_rows_are_the_same() -> None:
    matrix = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, 3.0, 0.0]])
    lower, upper = np.array([1.0, -1.0, 6.0]), np.full(3, INFINITY)
    dense = LinearProgram(np.ones(3), np.zeros(3), np.full(3, 9.0))
    assert dense.add_dense_rows(lower, upper, matrix) == range(3)
    sparse = LinearProgram(np.ones(3), np.zeros(3), np.full(3, 9.0))
    sparse.add_rows(lower, upper, np.array([0, 2, 2]), np.array([0, 2, 1]), np.array([1.0, 2.0, 3.0]))
    assert dense.solve().values.tolist() == sparse.solve().values.tolist() == [0.0, 2.0, 0.5]


CHANGES: dict[str, tuple[Callable[[LinearProgram], object], float]] = {
    "costs": (lambda p: p.set_costs(np.array([1]), np.array([1.0])), 4.0),
    "column bounds": (lambda p: p.set_column_bounds(np.array([0]), np.zeros(1), np.ones(1)), 11.0),
    "row bounds": (lambda p: p.set_row_bounds(np.array([0]), np.array([2.0]), np.array([INFINITY])), 4.0),
    "coefficients": (lambda p: p.set_coefficients(np.array([0]), np.array([0]), np.array([2.0])), 4.0),
    "rows": (lambda p: p.add_dense_rows(np.array([2.0]), np.array([INFINITY]), np.eye(2)[1:]), 10.0),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_kept_model_can_be_changed_and_solved_again(what: str) -> None:
    change, cost = CHANGES[what]
    program = _diet()
    program.solve()
    change(program)
    assert program.solve().objective == pytest.approx(cost)


def test_deleting_rows_restores_the_problem() -> None:
    program = _diet()
    program.add_dense_rows(np.array([4.0, 5.0]), np.full(2, INFINITY), np.eye(2))
    assert program.solve().status is SolveStatus.INFEASIBLE
    program.delete_rows(1)
    assert program.rows == 1
    assert program.solve().objective == pytest.approx(9.0)


def test_solving_again_from_the_last_basis_takes_no_iteration() -> None:
    program = _knapsack_rows(integer=None)
    assert program.solve().iterations > 0
    assert program.solve().iterations == 0


def test_a_basis_warm_starts_another_program_of_the_same_shape() -> None:
    first, second = _knapsack_rows(), _knapsack_rows()
    best = first.solve()
    second.set_basis(first.basis)
    again = second.solve()
    assert again.iterations == 0
    assert again.objective == pytest.approx(best.objective)


def test_infeasible_and_unbounded_are_answers_and_not_errors() -> None:
    free = LinearProgram(np.array([-1.0]), np.zeros(1), np.array([INFINITY]))
    assert free.solve().status in (SolveStatus.UNBOUNDED, SolveStatus.UNBOUNDED_OR_INFEASIBLE)
    assert free.solve().bound == -INFINITY
    crossed = LinearProgram(np.ones(1), np.array([2.0]), np.array([1.0])).solve()
    assert crossed.status is SolveStatus.INFEASIBLE
    assert not crossed.feasible


def test_a_program_without_columns_is_optimal_at_zero() -> None:
    solution = LinearProgram(np.empty(0), np.empty(0), np.empty(0)).solve()
    assert solution.optimal
    assert solution.objective == 0


def test_a_node_limit_ends_with_a_bound_below_the_optimum() -> None:
    best = _knapsack().solve(relative_gap=0.0)
    cut_short = _knapsack().solve(node_limit=1, relative_gap=0.0)
    assert best.optimal
    assert np.allclose(best.values, best.values.round())
    assert cut_short.status in (SolveStatus.WORK_LIMIT, SolveStatus.OPTIMAL)
    assert cut_short.bound <= best.objective + 1e-6 <= cut_short.objective + 2e-6


def test_a_time_limit_of_zero_is_reported_as_such() -> None:
    assert _knapsack(60).solve(time_limit=0.0).status is SolveStatus.TIME_LIMIT


def test_a_start_becomes_the_first_incumbent() -> None:
    best = _knapsack().solve()
    program = _knapsack()
    program.set_start(np.arange(30), best.values)
    assert program.solve(node_limit=0).objective == pytest.approx(best.objective)


def test_the_same_calls_give_the_same_bytes() -> None:
    first, second = _knapsack().solve(), _knapsack().solve()
    assert first.values.tobytes() == second.values.tobytes()
    assert (first.nodes, first.iterations) == (second.nodes, second.iterations)


BAD: dict[str, Callable[[], object]] = {
    "a NaN cost": lambda: LinearProgram(np.array([np.nan]), np.zeros(1), np.ones(1)),
    "a column that does not exist": lambda: _diet().add_rows(
        np.zeros(1), np.ones(1), np.array([0]), np.array([5]), np.ones(1)
    ),
    "a row that does not exist": lambda: _diet().set_coefficients(np.array([3]), np.array([0]), np.ones(1)),
}


@pytest.mark.parametrize("what", BAD)
def test_what_highs_cannot_take_is_refused(what: str) -> None:
    with pytest.raises(BackendError, match="HiGHS"):
        BAD[what]()


def test_nothing_is_printed_on_the_way() -> None:
    code = (
        "import numpy as np; from kvplan_solver.backends.highs import LinearProgram; "
        "LinearProgram(np.ones(1), np.zeros(1), np.ones(1)).solve()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""
