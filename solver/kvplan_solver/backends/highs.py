"""A thin typed door to HiGHS: linear and mixed-integer programs from numpy arrays. Only importer of highspy.

Purpose: one kept model that is changed and solved again from its last basis. Minimises only. Runs on one
thread with a fixed seed, so the same calls give the same bytes unless a time limit strikes; prefer the
counted limits (nodes, iterations). The library is loaded with the first program, so that a process that only
checks plans never holds it. Must not know anything about fleets, classes or configurations.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvplan_solver.errors import BackendError

Floats = NDArray[np.float64]
Indices = NDArray[np.integer[Any]]

INFINITY = float(np.inf)
"""HiGHS's own value for no bound and no limit."""


class SolveStatus(StrEnum):
    """How a solve ended."""

    OPTIMAL = "Optimal"
    INFEASIBLE = "Infeasible"
    UNBOUNDED = "Unbounded"
    UNBOUNDED_OR_INFEASIBLE = "UnboundedOrInfeasible"
    WORK_LIMIT = "WorkLimit"
    """A counted limit (nodes, iterations) ended the solve; repeatable."""
    TIME_LIMIT = "TimeLimit"
    """The clock ended the solve; not repeatable."""


@cache
def _library() -> Any:
    import highspy  # noqa: PLC0415  loaded where it is used

    return highspy


@cache
def _statuses() -> dict[Any, SolveStatus]:
    """What HiGHS's words for the end of a solve mean; the rest say nothing about the problem."""
    model = _library().HighsModelStatus
    return {
        model.kOptimal: SolveStatus.OPTIMAL,
        model.kModelEmpty: SolveStatus.OPTIMAL,
        model.kInfeasible: SolveStatus.INFEASIBLE,
        model.kUnbounded: SolveStatus.UNBOUNDED,
        model.kUnboundedOrInfeasible: SolveStatus.UNBOUNDED_OR_INFEASIBLE,
        model.kIterationLimit: SolveStatus.WORK_LIMIT,
        model.kSolutionLimit: SolveStatus.WORK_LIMIT,
        model.kTimeLimit: SolveStatus.TIME_LIMIT,
    }


@dataclass(frozen=True, eq=False)
class Solution:
    """What one solve found.

    Attributes:
        status: how the solve ended.
        feasible: whether ``values`` satisfies every row and bound (always so when optimal).
        values: primal point, one per column; meaningless unless ``feasible``.
        duals: ∂objective/∂(active row bound), one per row; zeros for a mixed-integer program.
        reduced_costs: the same for the column bounds; zeros for a mixed-integer program.
        objective: of ``values``; +inf unless ``feasible``.
        bound: proven lower bound on the objective; -inf where there is none.
        iterations: simplex iterations of this solve.
        nodes: branch-and-bound nodes of this solve.
    """

    status: SolveStatus
    feasible: bool
    values: Floats
    duals: Floats
    reduced_costs: Floats
    objective: float
    bound: float
    iterations: int
    nodes: int

    @property
    def optimal(self) -> bool:
        """Whether the solve proved its point optimal (within the gap asked for)."""
        return self.status is SolveStatus.OPTIMAL


class LinearProgram:
    """One kept program: min c·x, lower ≤ A·x ≤ upper, column bounds, some columns integer.

    Every change keeps the last basis, so that the next ``solve`` of a pure LP starts warm.

    Args:
        costs: c, one per column.
        column_lower: lower bounds; -inf for none.
        column_upper: upper bounds; inf for none.
        integer: which columns are integer, booleans; None for a pure LP.
        seed: HiGHS's random seed.
        primal: use the primal simplex, which is faster when many bounds are loose.

    Raises:
        BackendError: HiGHS refuses the arrays (wrong shapes, an index out of range), or one holds NaN.
    """

    def __init__(
        self,
        costs: Floats,
        column_lower: Floats,
        column_upper: Floats,
        integer: NDArray[np.bool_] | None = None,
        seed: int = 0,
        *,
        primal: bool = False,
    ) -> None:
        # highspy.Highs registers callbacks as it is made, and that prints a banner; the class below does not.
        self._highs: Any = _library()._core._Highs()
        for name, value in {
            "output_flag": False,
            "threads": 1,
            "parallel": "off",
            "random_seed": seed,
        }.items():
            self._set(name, value)
        if primal:
            self._set("simplex_strategy", int(_library().simplex_constants.SimplexStrategy.kSimplexStrategyPrimal))
        whole = np.flatnonzero(() if integer is None else integer).astype(np.int32)
        self._mixed_integer = bool(len(whole))
        count = len(costs)
        none = np.empty(0, dtype=np.int32)
        self._do(
            "addCols", count, _floats(costs), _floats(column_lower), _floats(column_upper),
            0, np.zeros(count, dtype=np.int32), none, np.empty(0),
        )  # fmt: skip
        if self._mixed_integer:
            kinds = np.full(len(whole), int(_library().HighsVarType.kInteger), dtype=np.uint8)
            self._do("changeColsIntegrality", len(whole), whole, kinds)

    @property
    def rows(self) -> int:
        """Number of rows so far."""
        return int(self._highs.getNumRow())

    @property
    def columns(self) -> int:
        """Number of columns."""
        return int(self._highs.getNumCol())

    def add_rows(self, lower: Floats, upper: Floats, starts: Indices, indices: Indices, values: Floats) -> range:
        """Append rows in compressed form.

        Args:
            lower: one per row; -inf for none.
            upper: one per row; inf for none.
            starts: index into ``indices`` and ``values`` of each row's first entry (more are ignored).
            indices: column of each entry.
            values: coefficient of each entry.

        Returns:
            The numbers of the new rows.
        """
        first, count = self.rows, len(lower)
        self._do(
            "addRows", count, _floats(lower), _floats(upper),
            len(values), _indices(starts)[:count], _indices(indices), _floats(values),
        )  # fmt: skip
        return range(first, first + count)

    def add_dense_rows(self, lower: Floats, upper: Floats, matrix: Floats) -> range:
        """Append the rows of a small dense matrix; zeros are left out."""
        row, column = np.nonzero(matrix)
        starts = np.searchsorted(row, np.arange(len(matrix)))
        return self.add_rows(lower, upper, starts, column, matrix[row, column])

    def delete_rows(self, first: int) -> None:
        """Drop row ``first`` and all after it."""
        gone = np.arange(first, self.rows, dtype=np.int32)
        if len(gone):
            self._do("deleteRows", len(gone), gone)

    def set_costs(self, indices: Indices, values: Floats) -> None:
        """Replace the cost of some columns."""
        self._do("changeColsCost", len(indices), _indices(indices), _floats(values))

    def set_column_bounds(self, indices: Indices, lower: Floats, upper: Floats) -> None:
        """Replace both bounds of some columns."""
        self._do("changeColsBounds", len(indices), _indices(indices), _floats(lower), _floats(upper))

    def set_row_bounds(self, rows: Indices, lower: Floats, upper: Floats) -> None:
        """Replace both bounds of some rows."""
        self._do("changeRowsBounds", len(rows), _indices(rows), _floats(lower), _floats(upper))

    def set_coefficients(self, rows: Indices, columns: Indices, values: Floats) -> None:
        """Replace single entries of A; entries that did not exist are created."""
        for row, column, value in zip(rows, columns, values, strict=True):
            self._do("changeCoeff", int(row), int(column), float(value))

    def set_start(self, indices: Indices, values: Floats) -> None:
        """Offer a (partial) point to the next mixed-integer solve as its first incumbent."""
        self._do("setSolution", len(indices), _indices(indices), _floats(values))

    @property
    def basis(self) -> object:
        """The last solve's basis, opaque, for ``set_basis`` of a program of the same shape."""
        return self._highs.getBasis()

    def set_basis(self, basis: object) -> None:
        """Start the next pure LP solve from another program's basis; a basis of another shape is ignored."""
        shape = (len(basis.col_status), len(basis.row_status))  # type: ignore[attr-defined]
        if shape == (self.columns, self.rows):
            self._do("setBasis", basis)

    def solve(
        self,
        time_limit: float | None = None,
        node_limit: int | None = None,
        relative_gap: float | None = None,
        iteration_limit: int | None = None,
    ) -> Solution:
        """Minimise from the last basis.

        Args:
            time_limit: seconds; None for none. A solve that it ends is not repeatable.
            node_limit: branch-and-bound nodes; None for none.
            relative_gap: (objective − bound)/|objective| at which a mixed-integer solve may stop.
            iteration_limit: simplex iterations of a pure LP; None for none.

        Raises:
            BackendError: HiGHS ends in a way that says nothing about the problem.
        """
        most = _library().kHighsIInf
        self._set("time_limit", INFINITY if time_limit is None else time_limit)
        self._set("mip_max_nodes", most if node_limit is None else node_limit)
        self._set("mip_rel_gap", 1e-6 if relative_gap is None else relative_gap)
        self._set("simplex_iteration_limit", most if iteration_limit is None else iteration_limit)
        self._highs.run()
        if self._highs.getModelStatus() not in _statuses():
            self._run_afresh()
        return self._solution()

    def _run_afresh(self) -> None:
        """Once more from nothing and without presolve: HiGHS can lose its way from a kept basis on a bad scaling."""
        self._do("clearSolver")
        self._set("presolve", "off")
        self._highs.run()
        self._set("presolve", "choose")

    def _solution(self) -> Solution:
        model_status = self._highs.getModelStatus()
        if model_status not in _statuses():
            raise BackendError(f"HiGHS ended with {self._highs.modelStatusToString(model_status)}")
        status, point, info = _statuses()[model_status], self._highs.getSolution(), self._highs.getInfo()
        feasible = self._has_point(info.primal_solution_status, model_status)
        objective = float(info.objective_function_value) if feasible else INFINITY
        duals, reduced = _floats(point.row_dual), _floats(point.col_dual)
        return Solution(
            status=status,
            feasible=feasible,
            values=_floats(point.col_value),
            duals=duals if len(duals) else np.zeros(self.rows),
            reduced_costs=reduced if len(reduced) else np.zeros(self.columns),
            objective=objective,
            bound=self._bound(status, objective),
            iterations=max(0, int(info.simplex_iteration_count)),
            nodes=max(0, int(info.mip_node_count)),
        )

    def _has_point(self, primal_status: Any, model_status: Any) -> bool:
        """Whether there is a feasible point; that of a program without columns is the empty one."""
        found = int(_library().SolutionStatus.kSolutionStatusFeasible)
        return bool(primal_status == found or model_status == _library().HighsModelStatus.kModelEmpty)

    def _bound(self, status: SolveStatus, objective: float) -> float:
        if self._mixed_integer and status in (
            SolveStatus.OPTIMAL,
            SolveStatus.WORK_LIMIT,
            SolveStatus.TIME_LIMIT,
        ):
            return float(self._highs.getInfo().mip_dual_bound)
        return objective if status is SolveStatus.OPTIMAL else -INFINITY

    def _set(self, option: str, value: object) -> None:
        self._do("setOptionValue", option, value)

    def _do(self, call: str, *arguments: object) -> None:
        if getattr(self._highs, call)(*arguments) == _library().HighsStatus.kError:
            raise BackendError(f"HiGHS refuses {call}: check shapes and indices")


def _floats(values: object) -> Floats:
    """As HiGHS wants them; a NaN is refused here because HiGHS may loop on it."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if np.isnan(array).any():
        raise BackendError("HiGHS is not given NaN: check costs, bounds and coefficients")
    return array


def _indices(values: object) -> NDArray[np.int32]:
    return np.ascontiguousarray(values, dtype=np.int32)
