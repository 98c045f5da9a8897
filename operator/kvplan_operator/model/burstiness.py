"""Ca² of the arrivals of a class from what each of several routers saw of them.

Inputs: λ of the class, the routers' histogram of times between their own arrivals with its exact mean. Output: Ca² for
(7), or None. Pure.

A router that gets a random share p of a renewal stream sees c_p² = p·c² + 1 − p; so c² = 1 + (c_p² − 1)/p, with
p = 1/(λ·mean gap). A balancer that deals in turn makes each router's stream smoother than that, which cannot be told
from smooth traffic: below 1 the share is not taken out, and several routers then count as Poisson.
"""

import math

from kvplan_operator.model.histograms import Histogram

LEAST_GAPS = 100
"""Times between arrivals below which their variance is not told."""
RESOLVED = 2
"""Mean over the first edge from which the buckets show any variation at all."""
_ALL = 0.95
"""Share of the stream from which one router is taken to see all of it."""


def arrival_scv(rate: float, gaps: Histogram, gap_seconds: float) -> float | None:
    """Squared coefficient of variation of the times between arrivals of a class.

    Args:
        rate: λ over all routers, requests per second.
        gaps: times between arrivals at one router, all routers together, seconds.
        gap_seconds: sum of those times.
    """
    if gaps.total < LEAST_GAPS or gap_seconds <= 0 or rate <= 0:
        return None
    mean = gap_seconds / gaps.total
    if mean < RESOLVED * min(gaps.edges, default=math.inf):
        return None
    seen = gaps.scv(mean)
    share = min(1.0, 1 / (rate * mean))
    if seen is None or share >= _ALL:
        return seen
    return 1 + max(0.0, seen - 1) / share
