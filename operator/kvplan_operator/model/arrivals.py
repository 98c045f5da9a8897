"""Arrival rate and burstiness of one class from its arrival times.

Inputs: ascending arrival times in seconds. Outputs: λ per second, overall and per window, and Ca², the
squared coefficient of variation of the inter-arrival times that (7) takes in place of 1 (02-solver §1).
No I/O, no clock.

Two estimators of Ca²:
- gaps: variance over squared mean of the gaps between arrivals.
- counts: variance over mean of the requests per stamp of a coarse grid (the index of dispersion, which for
  a renewal process tends to Ca²). Used when the stamps are so coarse that, on average, more than one request
  shares a stamp: the gaps then measure the grid and not the traffic.
"""

from dataclasses import dataclass

import numpy as np

from kvplan_operator.model.trace import Floats, Ints

MIN_WINDOW_REQUESTS = 30
"""Windows with fewer requests say nothing about variance and are left out of the median."""
_GRID_TOLERANCE = 0.1  # share of the grid step by which a stamp may miss it
_GRID_SHARE = 0.9  # share of the gaps between stamps that must be whole steps


@dataclass(frozen=True)
class Arrivals:
    """Rate and burstiness of one class.

    Attributes:
        requests_per_second: λ.
        window_seconds: length of the observation.
        window_rates: λ of each equal window, in time order.
        scv: Ca² over the whole observation; None with fewer than three requests.
        window_scv_median: median of the windows' Ca², robust to one flash crowd; None without usable windows.
        grid_seconds: step of a coarse time grid, 0 when the stamps are fine enough to use the gaps.
    """

    requests_per_second: float
    window_seconds: float
    window_rates: tuple[float, ...]
    scv: float | None
    window_scv_median: float | None
    grid_seconds: float = 0.0

    @property
    def note(self) -> str:
        """How Ca² was measured when it was not from the gaps, else empty."""
        if not self.grid_seconds:
            return ""
        return f"time stamps lie on a {self.grid_seconds:g} s grid: Ca² is from the counts per stamp"


def measure_arrivals(arrival_seconds: Floats, windows: int) -> Arrivals | None:
    """Rate and burstiness of ascending arrival times.

    Args:
        arrival_seconds: shape (n,), ascending.
        windows: equal time windows to cut the observation into, at least 1.

    Returns:
        None when all requests share one stamp (one request included): no rate can be told from that.
    """
    grid = coarse_grid_seconds(arrival_seconds)
    length = observed_seconds(arrival_seconds, grid)
    if length <= 0:
        return None
    parts = np.split(arrival_seconds, window_edges(arrival_seconds, length, windows))
    per_window = [_scv(part, grid) for part in parts if len(part) >= MIN_WINDOW_REQUESTS]
    known = [value for value in per_window if value is not None]
    return Arrivals(
        requests_per_second=len(arrival_seconds) / length,
        window_seconds=length,
        window_rates=tuple(len(part) * windows / length for part in parts),
        scv=_scv(arrival_seconds, grid),
        window_scv_median=float(np.median(known)) if known else None,
        grid_seconds=grid,
    )


def observed_seconds(arrival_seconds: Floats, grid_seconds: float = 0.0) -> float:
    """First to last stamp plus one mean gap (or one grid step): n requests then make n/length their rate."""
    span = float(arrival_seconds[-1] - arrival_seconds[0])
    if span <= 0:
        return 0.0
    return span + max(grid_seconds, span / (len(arrival_seconds) - 1))


def window_edges(arrival_seconds: Floats, length_seconds: float, windows: int) -> Ints:
    """Indices at which equal windows begin, without the first, shape (windows−1,)."""
    edges = arrival_seconds[0] + length_seconds * np.arange(1, windows) / windows
    return np.asarray(np.searchsorted(arrival_seconds, edges, side="left"))


def coarse_grid_seconds(arrival_seconds: Floats) -> float:
    """Step of the time grid when more than one request shares a stamp on average, else 0."""
    stamps = np.unique(arrival_seconds)
    if len(stamps) < 3 or len(arrival_seconds) <= 2 * len(stamps):
        return 0.0
    gaps = np.diff(stamps)
    step = float(np.median(gaps))
    on_grid = np.abs(gaps / step - np.round(gaps / step)) <= _GRID_TOLERANCE
    return step if on_grid.mean() >= _GRID_SHARE else 0.0


def _scv(arrival_seconds: Floats, grid_seconds: float) -> float | None:
    if len(arrival_seconds) < 3:
        return None
    if grid_seconds:
        return _dispersion_per_stamp(arrival_seconds, grid_seconds)
    gaps = np.diff(arrival_seconds)
    mean = float(gaps.mean())
    return float(gaps.var()) / mean**2 if mean > 0 else None


def _dispersion_per_stamp(arrival_seconds: Floats, grid_seconds: float) -> float:
    """Variance over mean of the requests per grid step; empty steps count without being stored."""
    steps, counts = np.unique(np.round(arrival_seconds / grid_seconds), return_counts=True)
    cells = float(steps[-1] - steps[0]) + 1
    mean = counts.sum() / cells
    return float(((counts.astype(np.float64) ** 2).sum() / cells - mean**2) / mean)
