"""Collects sparse rows of a linear program and adds them in one call."""

import numpy as np
from numpy.typing import NDArray

from kvplan_solver.backends.highs import Indices, LinearProgram
from kvplan_solver.instance import Floats


class RowBuilder:
    """Collects sparse rows and adds them in one call."""

    def __init__(self) -> None:
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.starts: list[int] = []
        self.indices: list[NDArray[np.int64]] = []
        self.values: list[Floats] = []
        self.entries = 0

    def add(self, lower: float, upper: float, columns: NDArray[np.int64], values: Floats) -> int:
        """Append one row; returns its number among the collected ones."""
        self.lower.append(lower)
        self.upper.append(upper)
        self.starts.append(self.entries)
        self.indices.append(columns)
        self.values.append(values)
        self.entries += len(columns)
        return len(self.lower) - 1

    def add_to(self, program: LinearProgram) -> None:
        """Hand the rows over."""
        if not self.lower:
            return
        indices: Indices = np.concatenate(self.indices).astype(np.int32)
        program.add_rows(
            np.array(self.lower), np.array(self.upper), np.array(self.starts, dtype=np.int32),
            indices, np.concatenate(self.values),
        )  # fmt: skip
