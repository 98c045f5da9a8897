"""Waiting cells: the part of the bound that ties X·W together, for problems small enough to afford it.

The relaxation lets the waiting of a configuration fall on whichever class it costs least. In truth all its
requests wait the same W_k. Here W_k lies in one of C cells [lo, hi] chosen by a binary, X is split over the
cells, and X·lo ≤ q ≤ X·hi holds in the chosen one: exact up to the width of a cell. Cells are narrow around
the incumbent's own W, where the bound must be tight, and wide elsewhere.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kvplan_solver.certified.columns import Columns
from kvplan_solver.certified.rows import RowBuilder
from kvplan_solver.cost import Coefficients
from kvplan_solver.instance import Floats

Ints = NDArray[np.int64]

_COARSE = (0.0, 0.3, 0.6, 0.8, 0.92, 1.0, 1.08, 1.2, 1.5, 2.5, 6.0)
_FINE = (0.0, 0.6, 0.85, 0.95, 0.985, 1.0, 1.015, 1.05, 1.15, 1.5, 3.0)
_RATIO = 2.5
CELLS = len(_COARSE)
"""Every edge starts a cell; the last one ends at the largest W that u_max allows."""


def longest_wait(constants: Coefficients) -> Floats:
    """W at u_max if only the slowest class came, seconds, (K,)."""
    u = constants.instance.max_utilisation
    return np.asarray(u * constants.v * constants.T.max(axis=0) / (constants.slots * (1 - u)))


def even_edges(constants: Coefficients) -> Floats:
    """Edges over four decades below the longest wait, seconds, (K, C+1): for when nothing is known."""
    longest = longest_wait(constants)
    steps = np.concatenate(([0.0], _RATIO ** np.arange(1.0 - CELLS, 1.0)))
    return np.asarray(np.outer(longest, steps))


def edges_around(constants: Coefficients, waiting: Floats, factors: tuple[float, ...]) -> Floats:
    """Edges of the cells around an incumbent, seconds, (K, C+1).

    Args:
        constants: of the instance.
        waiting: W of the incumbent, (K,); 0 where it uses no group.
        factors: edges as multiples of that W.
    """
    longest = longest_wait(constants)
    used = waiting[waiting > 0]
    typical = float(used.mean()) if used.size else 0.0
    centre = np.where(waiting > 0, waiting, np.where(typical > 0, typical, longest / 10))
    inner = np.minimum(np.outer(centre, factors), longest[:, None])
    return np.concatenate((inner, longest[:, None]), axis=1)


CELL_PASSES: tuple[Callable[[Coefficients, Floats], Floats], ...] = (
    lambda constants, waiting: edges_around(constants, waiting, _COARSE),
    lambda constants, waiting: edges_around(constants, waiting, _FINE),
    lambda constants, _: even_edges(constants),
)
"""Edges from the incumbent's W, in the order in which they are tried."""


def add_cell_rows(rows: RowBuilder, columns: Columns, i_of: Ints, k_of: Ints, rates: Floats, edges: Floats) -> None:
    """Rows for every pair and configuration; see the module's text.

    Args:
        rows: collects them.
        columns: with ``cells`` = C.
        i_of: class per pair.
        k_of: configuration per pair.
        rates: λ, (I,).
        edges: seconds, (K, C+1).
    """
    cells = columns.cells
    for j, (i, k) in enumerate(zip(i_of.tolist(), k_of.tolist(), strict=True)):
        split = columns.cell_rate + j * cells + np.arange(cells)
        rows.add(0.0, 0.0, np.append(split, j), np.append(np.ones(cells), -1.0))
        rows.add(0.0, np.inf, np.append(split, columns.wait + j), np.append(-edges[k, :-1], 1.0))
        rows.add(-np.inf, 0.0, np.append(split, columns.wait + j), np.append(-edges[k, 1:], 1.0))
        for cell in range(cells):
            chosen = columns.cell_open + k * cells + cell
            rows.add(-np.inf, 0.0, np.array([split[cell], chosen]), np.array([1.0, -float(rates[i])]))
    for k in range(columns.configurations):
        chosen = columns.cell_open + k * cells + np.arange(cells)
        rows.add(-np.inf, 1.0, chosen, np.ones(cells))
