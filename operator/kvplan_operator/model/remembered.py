"""What the status of a class remembers of its output lengths, for a class that is idle when the operator starts.

Input: a RequestClass with the 16 quantiles that were written while it had traffic. Output: equally weighted samples.
Cluster state is the only memory that survives a restart; the routers' histograms reach back one window. Pure.
"""

from kvplan_operator.api.request_class import RequestClass
from kvplan_operator.model.lengths import lengths_from_quantiles
from kvplan_operator.model.trace import Floats
from kvplan_solver.units import MILLI, from_milli


def remembered_lengths(request_class: RequestClass) -> Floats | None:
    """Samples, tokens; None where the status has no quantiles, or none that make a distribution."""
    points = sorted((point.probability_milli, point.tokens) for point in request_class.status.quantiles)
    levels, tokens = [level for level, _ in points], [float(value) for _, value in points]
    if not points or levels[-1] != MILLI or tokens != sorted(tokens):
        return None
    return lengths_from_quantiles([from_milli(level) for level in levels], tokens).samples
