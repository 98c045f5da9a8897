"""LP (22) of the BCD-DRO paper for HiGHS: the oracle for the closed form of one class.

min γε + Σ_n θ_n/N under (8b)–(8g). With η fixed it gives f(η); with η free in [0, Lmax] it gives V.
"""

import numpy as np

from kvplan_solver.backends.highs import INFINITY, Floats, LinearProgram, Solution
from kvplan_solver.instance import ClassInput


def lp_22(c: ClassInput, lower: Floats, upper: Floats) -> Solution:
    """Solve one block per pair (lower, upper) of bounds on η, all in one program.

    Returns:
        The solution; columns are η, γ, θ_1…θ_N of the first block, then of the next.
    """
    width, blocks = 2 + len(c.output_lengths), len(lower)
    low, high = np.zeros((blocks, width)), np.full((blocks, width), INFINITY)
    low[:, 0], high[:, 0] = lower, upper
    program = LinearProgram(np.tile(_costs(c), blocks), low.ravel(), high.ravel())
    for right, slope, toll in _lines(c):
        _add_line(program, blocks, right, slope, toll)
    return program.solve()


def block_costs(c: ClassInput, solution: Solution) -> Floats:
    """The optimum of each block, cost per request."""
    return np.asarray(solution.values.reshape(-1, 2 + len(c.output_lengths)) @ _costs(c))


def _costs(c: ClassInput) -> Floats:
    n = len(c.output_lengths)
    return np.concatenate(([0.0, c.radius], np.full(n, 1 / n)))


def _lines(c: ClassInput) -> tuple[tuple[Floats, float, Floats], ...]:
    """(8b)–(8e) as right ≤ θ_n + slope·η + toll_n·γ."""
    xi, limit = c.output_lengths, float(c.max_output_tokens)
    cp, cw, zero = c.preemption_cost, c.waste_cost, np.zeros(len(c.output_lengths))
    return (
        (cp * xi, cp, zero),
        (-cw * xi, -cw, zero),
        (zero + cp * limit, cp, limit - xi),
        (zero, -cw, xi),
    )


def _add_line(program: LinearProgram, blocks: int, right: Floats, slope: float, toll: Floats) -> None:
    n = len(right)
    first = np.repeat(np.arange(blocks) * (2 + n), n)
    columns = np.column_stack((first, first + 1, first + 2 + np.tile(np.arange(n), blocks)))
    values = np.column_stack((np.full(len(first), slope), np.tile(toll, blocks), np.ones(len(first))))
    present = values != 0
    starts = np.cumsum(present.sum(axis=1)) - present.sum(axis=1)
    program.add_rows(np.tile(right, blocks), np.full(len(first), INFINITY), starts, columns[present], values[present])
