"""The columns of the relaxation."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Columns:
    """Where each kind of column starts; ``pairs`` X first, then the rest in this order.

    Attributes:
        pairs: (class, configuration) pairs a plan may use.
        configurations: K.
        classes: I.
        cells: waiting cells per configuration; 0 leaves them out.
    """

    pairs: int
    configurations: int
    classes: int
    cells: int = 0

    @property
    def z(self) -> int:
        """First z column."""
        return self.pairs

    @property
    def slack(self) -> int:
        """First σ column."""
        return self.z + self.configurations

    @property
    def wait(self) -> int:
        """First q column."""
        return self.slack + self.classes

    @property
    def deficit(self) -> int:
        """First D column."""
        return self.wait + self.pairs

    @property
    def extra(self) -> int:
        """First h column."""
        return self.deficit + self.pairs

    @property
    def switches(self) -> int:
        """First |z − z_now| column."""
        return self.extra + self.pairs

    @property
    def cell_rate(self) -> int:
        """First X-per-cell column, C per pair."""
        return self.switches + self.configurations

    @property
    def cell_open(self) -> int:
        """First cell binary, C per configuration."""
        return self.cell_rate + self.pairs * self.cells

    @property
    def total(self) -> int:
        """Number of columns."""
        return self.cell_open + self.configurations * self.cells
