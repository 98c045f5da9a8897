"""The robust reservation of one class as a function of ε, computed live from the closed form.

Inputs: a class and an ambiguity set. Output: radii and orders. Shows what 02-solver §2 states: under
Wasserstein1 the order is a step function of ε, so the paper's Remark 4 ("grows with ε") does not hold; the
other two sets move it. Pure.
"""

from dataclasses import dataclass, replace

import numpy as np

from kvplan_solver.instance import Ambiguity, ClassInput, Floats
from kvplan_solver.newsvendor import RobustOrder, robust_order

CURVE_POINTS = 241


@dataclass(frozen=True, eq=False)
class OrderCurve:
    """η* over a grid of radii.

    Attributes:
        radii: ε ascending, tokens (a fraction for ``Scale``), shape (n,).
        output_tokens: η* at each, tokens, shape (n,).
    """

    radii: Floats
    output_tokens: Floats


def order_at(c: ClassInput, ambiguity: Ambiguity, radius: float) -> RobustOrder:
    """The order of the class if its radius were another one."""
    return robust_order(replace(c, radius=radius), ambiguity)


def orders_over_radius(c: ClassInput, ambiguity: Ambiguity, points: int = CURVE_POINTS) -> OrderCurve:
    """η* from ε = 0 to half beyond the radius in force and the last jump."""
    jumps = shift_thresholds(c) if ambiguity is Ambiguity.WASSERSTEIN_1 else ()
    reach = 1.5 * max(c.radius, _least_reach(c, ambiguity), *jumps)
    # Both sides of every jump, so that a drawn line is as steep as the function.
    sides = [side for jump in jumps for side in (jump, np.nextafter(jump, np.inf))]
    radii = np.sort(np.concatenate((np.linspace(0.0, reach, points), sides)))
    return OrderCurve(radii, np.array([order_at(c, ambiguity, float(e)).output_tokens for e in radii]))


def shift_thresholds(c: ClassInput) -> tuple[float, float]:
    """The radii at which the Wasserstein1 order jumps, tokens: R, and R + B where it becomes q·Lmax.

    R is the closed form's own; the second is where its last branch begins, R plus the lower fractile
    integral (or the upper room, where waste is dearer than overflow).
    """
    samples, q = c.output_lengths, c.fractile
    weights = np.clip(q * samples.size - np.arange(samples.size), 0.0, 1.0)
    low = float(weights @ samples) / samples.size
    high = float((1 - weights) @ samples) / samples.size
    up_room = max(0.0, (1 - q) * c.max_output_tokens - high)
    return robust_order(c, Ambiguity.WASSERSTEIN_1).shift_threshold_tokens, up_room + low


def _least_reach(c: ClassInput, ambiguity: Ambiguity) -> float:
    return 0.15 if ambiguity is Ambiguity.SCALE else max(1.0, 0.15 * c.output_tokens_mean)


def radii_to_show(c: ClassInput) -> list[tuple[float, str]]:
    """Radii that tell the whole story of a class, ascending, each with a remark (often empty)."""
    first, second = shift_thresholds(c)
    mean = c.output_tokens_mean
    radii = {share * mean: "" for share in (0.0, 0.05, 0.15, 0.5, 1.0, 2.0)}
    radii |= {first: "R: last radius of the sample order", 1.001 * first: "just above R"}
    radii |= {second: "last radius before q·Lmax", 1.001 * second + 1e-9: "q·Lmax from here on"}
    if c.radius:
        radii[c.radius] = "in force"
    return sorted(radii.items())
