"""One class in closed form: the robust reservation and its worst-case cost (02-solver §2).

η = r − Lin is the output reservation, L = Lmax the end of the support, ξ̂ the samples,
f(η) = sup_P E[cp(ξ−η)⁺ + cw(η−ξ)⁺] over the ambiguity set. For Wasserstein1 this is LP (22) of the BCD-DRO
paper, solved here without an LP: the optimal order has a closed form, and f(η) is the minimum over the
dual price γ of a convex piecewise linear function that prefix sums evaluate in O(log N).

Honesty: the Wasserstein1 order is a *step function* of ε. Up to the threshold R it equals the sample
average order, so the paper's Remark 4 ("grows with ε") does not hold; R is published per class. The other
two ambiguity sets do move the order.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvplan_solver.instance import Ambiguity, ClassInput, Floats

_BISECTIONS = 80


@dataclass(frozen=True)
class RobustOrder:
    """The optimal output reservation of one class on its own.

    Attributes:
        output_tokens: η*, tokens beyond the prompt.
        cost: V = f(η*), cost per admitted request.
        shift_threshold_tokens: R, the radius up to which η* equals the sample-average order; nan outside
            Wasserstein1.
    """

    output_tokens: float
    cost: float
    shift_threshold_tokens: float


def robust_order(c: ClassInput, ambiguity: Ambiguity) -> RobustOrder:
    """The optimal order, its cost and its shift threshold for one class."""
    if ambiguity is Ambiguity.WASSERSTEIN_1:
        return _wasserstein_1_order(c)
    low, high = _moved_samples(c, ambiguity)
    cp, cw = c.preemption_cost, c.waste_cost
    # A sample known only to lie in [low, high] costs max(cp(high−η), cw(η−low)): a V with its tip here.
    tips = np.sort((cp * high + cw * low) / (cp + cw))
    order = float(tips[_fractile_index(len(tips), c.fractile)])
    return RobustOrder(order, float(worst_case_cost(c, ambiguity, np.array([order]))[0]), float("nan"))


def worst_case_cost(c: ClassInput, ambiguity: Ambiguity, output_tokens: Floats) -> Floats:
    """f(η) for any reservation, exactly.

    Args:
        c: the class.
        ambiguity: the set of distributions.
        output_tokens: η, any shape (n,); may lie outside [0, Lmax].

    Returns:
        Cost per admitted request, shape (n,).
    """
    eta = np.asarray(output_tokens, dtype=np.float64)
    inside = np.clip(eta, 0.0, float(c.max_output_tokens))
    # Beyond the support every outcome costs the same further cw (above) or cp (below) per token.
    outside = c.waste_cost * (eta - inside).clip(0) + c.preemption_cost * (inside - eta).clip(0)
    if ambiguity is Ambiguity.WASSERSTEIN_1:
        return np.asarray(_wasserstein_1_cost(c, inside) + outside)
    low, high = _moved_samples(c, ambiguity)
    return np.asarray(_interval_cost(c, low, high, inside) + outside)


def _fractile_index(count: int, fractile: float) -> int:
    """Index of the lower empirical quantile: the smallest n with (n+1)/N ≥ q."""
    return min(count - 1, max(0, int(np.ceil(fractile * count - 1e-9)) - 1))


def _moved_samples(c: ClassInput, ambiguity: Ambiguity) -> tuple[Floats, Floats]:
    """Lowest and highest place each sample may move to, tokens, ascending, within [0, Lmax]."""
    samples, limit = c.output_lengths, float(c.max_output_tokens)
    if ambiguity is Ambiguity.SCALE:
        scaled = np.clip(samples * (1 + c.radius), 0.0, limit)
        return scaled, scaled
    return np.clip(samples - c.radius, 0.0, limit), np.clip(samples + c.radius, 0.0, limit)


def _interval_cost(c: ClassInput, low: Floats, high: Floats, eta: Floats) -> Floats:
    """Mean over samples of max(cp(high−η), cw(η−low)); both arrays ascend together, so one split suffices."""
    cp, cw, n = c.preemption_cost, c.waste_cost, len(low)
    split = np.searchsorted((cp * high + cw * low) / (cp + cw), eta, side="left")
    low_sums, high_sums = _prefix_sums(low), _prefix_sums(high)
    waste = cw * (eta * split - low_sums[split])
    overflow = cp * (high_sums[n] - high_sums[split] - eta * (n - split))
    return np.asarray((waste + overflow) / n)


def _prefix_sums(values: Floats) -> Floats:
    return np.concatenate(([0.0], np.cumsum(values)))


def _wasserstein_1_order(c: ClassInput) -> RobustOrder:
    """The three-branch closed form of 02-solver §2."""
    cp, cw, q, limit = c.preemption_cost, c.waste_cost, c.fractile, float(c.max_output_tokens)
    samples = c.output_lengths
    index = _fractile_index(len(samples), q)
    quantile = float(samples[index])
    low_integral, high_integral = _fractile_integrals(samples, index, q)
    up_room = max(0.0, (1 - q) * limit - high_integral)  # R: moving the upper tail to Lmax, at price cp
    down_room = low_integral  # B: moving the lower part to 0, at price cw
    cost = cp * high_integral - cw * low_integral + _knapsack(c.radius, (cp, up_room), (cw, down_room))
    order = _order_branch(c, quantile, up_room, down_room)
    return RobustOrder(order, min(cost, cp * cw * limit / (cp + cw)), up_room if cp >= cw else down_room)


def _fractile_integrals(samples: Floats, index: int, q: float) -> tuple[float, float]:
    """∫₀^q F⁻¹ and ∫_q^1 F⁻¹, with the boundary sample split by weight."""
    n = len(samples)
    part = q * n - index  # share of the boundary sample below the fractile
    below = float(samples[:index].sum()) + part * float(samples[index])
    above = (1 - part) * float(samples[index]) + float(samples[index + 1 :].sum())
    return below / n, above / n


def _knapsack(radius: float, first: tuple[float, float], second: tuple[float, float]) -> float:
    """Spend ε tokens of transport on two items (price, room), dearest first."""
    total, left = 0.0, radius
    for price, room in sorted((first, second), reverse=True):
        used = min(left, room)
        total, left = total + price * used, left - used
    return total


def _order_branch(c: ClassInput, quantile: float, up_room: float, down_room: float) -> float:
    cp, cw, limit = c.preemption_cost, c.waste_cost, float(c.max_output_tokens)
    first_room = up_room if cp >= cw else down_room
    if c.radius <= first_room:
        return quantile
    if c.radius > up_room + down_room:
        return c.fractile * limit
    if cp >= cw:
        return ((cp - cw) * limit + 2 * cw * quantile) / (cp + cw)
    return 2 * cp * quantile / (cp + cw)


def _wasserstein_1_cost(c: ClassInput, eta: Floats) -> Floats:
    """min over γ of the dual (16), by bisection on its slope, for all η at once."""
    dual = _Dual(c, eta)
    low = np.zeros_like(eta)
    high = np.full_like(eta, max(c.preemption_cost, c.waste_cost))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        spends_too_much = dual.transport(middle) > c.radius
        low, high = np.where(spends_too_much, middle, low), np.where(spends_too_much, high, middle)
    return np.minimum(dual.value(low), dual.value(high))


class _Dual:
    """The dual function (16) at given η: every sample stays, moves down to 0, or moves up to Lmax.

    The candidates (18)–(20) are a V in ξ (stay), a line of slope −γ (down) and one of slope +γ (up), so the
    samples that move down form a prefix and those that move up a suffix of the sorted samples.
    """

    def __init__(self, c: ClassInput, eta: Floats) -> None:
        self.cp, self.cw, self.limit = c.preemption_cost, c.waste_cost, float(c.max_output_tokens)
        self.radius, self.eta, self.samples = c.radius, eta, c.output_lengths
        self.sums = _prefix_sums(self.samples)
        self.at_eta = np.searchsorted(self.samples, eta, side="left")

    def _split(self, price: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Number of samples that move down, and index of the first that moves up."""
        cp, cw, eta = self.cp, self.cw, self.eta
        surplus = price * self.limit + cw * eta - cp * (self.limit - eta)
        with np.errstate(divide="ignore", invalid="ignore"):
            level = np.where(price > 0, surplus / (2 * price), np.where(surplus > 0, np.inf, -np.inf))
            stay_up = np.where(price + cw > 0, surplus / (price + cw), level)
            stay_down = np.where(price + cp > 0, (cp + cw) * eta / (price + cp), np.inf)
        may_fall, may_rise = price <= cw, price <= cp
        down_edge = np.where(may_fall, np.where(may_rise, np.minimum(stay_down, level), stay_down), -np.inf)
        up_edge = np.where(may_rise, np.where(may_fall, np.maximum(stay_up, level), stay_up), np.inf)
        down = np.searchsorted(self.samples, down_edge, side="right")
        up = np.searchsorted(self.samples, up_edge, side="right")
        return down, np.maximum(up, down)

    def transport(self, price: Floats) -> Floats:
        """Mean tokens moved at this price; falls as γ rises."""
        down, up = self._split(price)
        n = len(self.samples)
        moved_up = self.limit * (n - up) - (self.sums[n] - self.sums[up])
        return np.asarray((self.sums[down] + moved_up) / n)

    def value(self, price: Floats) -> Floats:
        """γε + mean φ(ξ̂, γ): an upper bound on f(η) for every γ ≥ 0, tight at the best."""
        down, up = self._split(price)
        n, eta = len(self.samples), self.eta
        middle = np.clip(self.at_eta, down, up)
        waste = self.cw * (eta * (middle - down) - (self.sums[middle] - self.sums[down]))
        overflow = self.cp * (self.sums[up] - self.sums[middle] - eta * (up - middle))
        fallen = self.cw * eta * down - price * self.sums[down]
        rise = self.limit * (n - up) - (self.sums[n] - self.sums[up])
        risen = self.cp * (self.limit - eta) * (n - up) - price * rise
        return np.asarray(price * self.radius + (waste + overflow + fallen + risen) / n)
