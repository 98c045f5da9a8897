"""Cells: z and δ fixed, everything that makes the rest bilinear boxed in.

A cell is a partition z, a caching pattern δ, and a box: for each class a run of reservations on the block
grid, for each configuration an interval of utilisation u and one of mean service time T̄. As
W = v·u·T̄/(S(1−u)) grows in both, the lower corner of the box gives the least W in it. Cells split in two.
"""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from kvplan_solver.errors import EnumerationTooLarge
from kvplan_solver.instance import Floats
from kvplan_solver.reference.model import Bools, Ints, Model
from kvplan_solver.reference.partitions import placeable_partitions

_MOST_PAIRS = 5_000


@dataclass(frozen=True, eq=False)
class Cells:
    """n cells as arrays.

    Attributes:
        z: groups, (n, K).
        cached: δ, (n, I, K).
        first: index of the smallest reservation of the run, (n, I).
        last: index of the largest, (n, I).
        u: utilisation from and to, (2, n, K).
        mean: T̄ from and to, seconds, (2, n, K).
        lower: proven lower bound on the cost of any plan in the cell, (n,).
    """

    z: Floats
    cached: Bools
    first: Ints
    last: Ints
    u: Floats
    mean: Floats
    lower: Floats

    def __len__(self) -> int:
        return len(self.lower)

    def take(self, index: Ints | Bools) -> "Cells":
        """Some of the cells."""
        return Cells(
            self.z[index],
            self.cached[index],
            self.first[index],
            self.last[index],
            self.u[:, index],
            self.mean[:, index],
            self.lower[index],
        )


def join(a: Cells, b: Cells) -> Cells:
    """Both lists in one."""
    return Cells(
        np.concatenate((a.z, b.z)),
        np.concatenate((a.cached, b.cached)),
        np.concatenate((a.first, b.first)),
        np.concatenate((a.last, b.last)),
        np.concatenate((a.u, b.u), axis=1),
        np.concatenate((a.mean, b.mean), axis=1),
        np.concatenate((a.lower, b.lower)),
    )


def first_cells(model: Model) -> Cells:
    """One cell, the whole box, for every placeable z and every δ whose prefixes fit into M.

    Raises:
        EnumerationTooLarge: too many pairs of z and δ.
    """
    partitions = placeable_partitions(model.instance)
    size = sum(2 ** int(_useful(model, z).sum()) for z in partitions)
    if size > _MOST_PAIRS:
        raise EnumerationTooLarge(
            f"the reference would enumerate {size:,} pairs of partition and caching, more than {_MOST_PAIRS:,}: "
            "use fewer GPUs, configurations or shared prefixes"
        )
    pairs = [(z, cached) for z in partitions for cached in _patterns(model, z)]
    n, shape = len(pairs), (len(model.rates), len(model.M))
    last = np.array([len(r) - 1 for r in model.reservations])
    ones = np.ones((n, shape[1]))
    return Cells(
        z=np.array([z for z, _ in pairs], dtype=np.float64).reshape(n, shape[1]),
        cached=np.array([cached for _, cached in pairs], dtype=np.bool_).reshape(n, *shape),
        first=np.zeros((n, shape[0]), dtype=np.int64),
        last=np.tile(last, (n, 1)),
        u=np.stack((0 * ones, model.instance.max_utilisation * ones)),
        mean=np.stack((ones * model.T.min(axis=0), ones * model.T.max(axis=0))),
        lower=np.full(n, -np.inf),
    )


def _useful(model: Model, z: tuple[int, ...]) -> Bools:
    return np.asarray((model.prefix > 0)[:, None] & (np.array(z) > 0)[None, :])


def _patterns(model: Model, z: tuple[int, ...]) -> list[Bools]:
    """Every δ with a prefix to share and a group to share it on, as far as the prefixes fit into M."""
    useful = _useful(model, z)
    places = np.argwhere(useful)
    found = []
    for choice in product((False, True), repeat=len(places)):
        cached = np.zeros(useful.shape, dtype=np.bool_)
        cached[tuple(places.T)] = choice
        if np.all((cached * model.prefix[:, None]).sum(axis=0) <= model.M):
            found.append(cached)
    return found


def split(cells: Cells, direction: Ints, at: Floats) -> Cells:
    """Halve every cell along one direction.

    Args:
        cells: n cells.
        direction: 0…I−1 a class's reservation, then K utilisations, then K mean service times, (n,).
        at: where to cut u or T̄; unused for a reservation, whose run is halved, (n,).
    """
    classes, configurations = cells.first.shape[1], cells.z.shape[1]
    lower, upper = _copy(cells), _copy(cells)
    row = np.arange(len(cells))
    is_class = direction < classes
    r, i = row[is_class], direction[is_class]
    middle = (cells.first[r, i] + cells.last[r, i]) // 2
    lower.last[r, i], upper.first[r, i] = middle, middle + 1
    for low, high, offset in (
        (upper.u, lower.u, classes),
        (upper.mean, lower.mean, classes + configurations),
    ):
        chosen = (direction >= offset) & (direction < offset + configurations)
        r, k = row[chosen], direction[chosen] - offset
        high[1, r, k], low[0, r, k] = at[chosen], at[chosen]
    return join(lower, upper)


def _copy(cells: Cells) -> Cells:
    return replace(
        cells,
        first=cells.first.copy(),
        last=cells.last.copy(),
        u=cells.u.copy(),
        mean=cells.mean.copy(),
    )
