"""The bracket: two numbers with the optimum of the model between them, by full enumeration.

Every placeable z and every useful δ is enumerated; inside each, the reservations on the block grid, the
utilisations and the mean service times are boxed in and the boxes are cut, cheapest bound first, until the
bracket is narrow. Guaranteed, up to ``TOLERANCE``: no plan at all costs less than ``lower``, and a plan
that obeys every constraint costs ``upper``. Exponential in everything: for instances of two or three
classes, two or three configurations and a handful of GPUs.
"""

from dataclasses import dataclass, replace

import numpy as np

from kvplan_solver.instance import Floats, Instance
from kvplan_solver.reference.cells import Cells, first_cells, join, split
from kvplan_solver.reference.model import Model, build_model
from kvplan_solver.reference.program import Bounds, least_loss, loss, solve_cells, waiting

TOLERANCE = 1e-6
"""Relative error of the linear programs; already inside the bracket."""

_MOST_CELLS = 5_000
_BATCH = 160
_FEW = 24


@dataclass(frozen=True)
class Bracket:
    """Lower and upper bound on the optimum, cost per second; both inf if no partition meets ``min_gpus``."""

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """Upper less lower, relative to the upper bound."""
        return (self.upper - self.lower) / max(1.0, abs(self.upper)) if np.isfinite(self.upper) else 0.0


def bracket(instance: Instance, width: float = 1e-3) -> Bracket:
    """Bracket the optimum of a tiny instance.

    Args:
        instance: the problem.
        width: relative width at which cutting stops; also ends, wider, after a fixed number of cells.

    Raises:
        EnumerationTooLarge: too many pairs of z and δ.
    """
    model = build_model(instance)
    cells = first_cells(model)
    if not len(cells):
        return Bracket(np.inf, np.inf)
    return _narrow(model, cells, width)


def _narrow(model: Model, open_cells: Cells, width: float) -> Bracket:
    """Best-first: bound a batch, drop what cannot win by more than the width, cut the rest."""
    upper = closed = np.inf
    seen = 0
    while len(open_cells) and seen < _MOST_CELLS:
        order = np.argsort(open_cells.lower, kind="stable")
        batch, open_cells = open_cells.take(order[:_BATCH]), open_cells.take(order[_BATCH:])
        seen += len(batch)
        bounds = solve_cells(model, batch)
        batch = replace(batch, lower=np.maximum(batch.lower, bounds.lower))
        upper = min(upper, float(bounds.upper.min()))
        children, settled = _cut(model, batch, bounds, upper - width * max(1.0, abs(upper)))
        closed = min(closed, settled)
        open_cells = join(children, open_cells)
    lower = min(upper, closed, float(open_cells.lower.min(initial=np.inf)))
    return Bracket(lower - TOLERANCE * abs(lower), upper + TOLERANCE * abs(upper))


def _cut(model: Model, batch: Cells, bounds: Bounds, good_enough: float) -> tuple[Cells, float]:
    """The parts of the cells that may still win, and the least bound of those that are settled."""
    score = _slack_by_direction(model, batch, bounds)
    going = (batch.lower < good_enough) & (score.max(axis=1) > 0)
    settled = float(batch.lower[~going].min(initial=np.inf))
    parents, direction = batch.take(going), score.argmax(axis=1)[going]
    lows, points = _corner_and_point(batch, bounds)
    low, point = (x[going, direction] for x in (lows, points))
    halves = split(parents, direction, (low + point) / 2)
    if len(halves) > _FEW:
        return halves, settled
    # A round costs the same for few cells as for many: cut the halves of intervals once more.
    is_interval = np.tile(direction >= batch.first.shape[1], 2)
    quarter_points = np.concatenate(((3 * low + point) / 4, point))
    quarters = split(halves.take(is_interval), np.tile(direction, 2)[is_interval], quarter_points[is_interval])
    return join(halves.take(~is_interval), quarters), settled


def _slack_by_direction(model: Model, batch: Cells, bounds: Bounds) -> Floats:
    """How much of upper − lower each direction explains, cost per second, (n, I + 2K)."""
    dearer = loss(model, batch.first) - least_loss(model, batch)
    by_class = np.where(bounds.raised[:, None], 0.0, bounds.rates.sum(axis=2) * dearer)
    least = waiting(model, batch.u[0], batch.mean[0])
    priced = (bounds.late * model.latency_weight)[:, :, None] * bounds.rates
    by_wait = priced.sum(axis=1) * (waiting(model, bounds.u, bounds.mean) - least).clip(0.0)
    u_first = _odds(bounds.u) * batch.mean[0] >= _odds(batch.u[0]) * bounds.mean
    return np.hstack((by_class, np.where(u_first, by_wait, 0.0), np.where(u_first, 0.0, by_wait)))


def _odds(u: Floats) -> Floats:
    """u/(1−u), to which W is proportional."""
    return np.asarray(u / (1 - u))


def _corner_and_point(batch: Cells, bounds: Bounds) -> tuple[Floats, Floats]:
    """Low corner of the box and the LP's point, (n, I + 2K) each; nothing is needed for the classes."""
    none = np.zeros(batch.first.shape)
    return np.hstack((none, batch.u[0], batch.mean[0])), np.hstack((none, bounds.u, bounds.mean))
