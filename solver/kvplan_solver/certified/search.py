"""Local search over partitions: ±1, swaps and exchanges of equal GPUs (02-solver §3, step 4).

A neighbour is tried only if the subgradient of the fixed-z relaxation, which bounds it from below, does not
rule it out, and in the order of the first-order cost at the incumbent. Counted work only; no clock.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from kvplan_solver.certified.bound import Bounder, group_prices
from kvplan_solver.certified.decision import Decision, Pricer
from kvplan_solver.certified.polish import Polisher
from kvplan_solver.instance import Floats, Instance
from kvplan_solver.packing import fits

_TRIES = 30
_GIVE_UP = 0.3
_LEAN_NODES = 50
TIE = 1e-7
"""Relative difference below which two objectives count as equal, and fewer GPUs decide."""


@dataclass
class Search:
    """The incumbent, the runner-up, and the means to improve them.

    Attributes:
        instance: what is solved.
        bounder: relaxations.
        pricer: decisions from rates.
        polisher: improvement at a fixed partition.
        report: called with every new incumbent.
        out_of_time: the wall-clock safety stop.
    """

    instance: Instance
    bounder: Bounder
    pricer: Pricer
    polisher: Polisher
    report: Callable[[Decision], None]
    out_of_time: Callable[[], bool]
    best: Decision | None = None
    second: Decision | None = None
    evaluated: int = 0

    def __post_init__(self) -> None:
        self._priced: set[tuple[int, ...]] = set()

    def consider_nothing(self) -> None:
        """Running nothing and rejecting everything is feasible unless a floor on GPUs forbids it."""
        groups = (0,) * len(self.instance.configurations)
        if fits(self.instance, groups):
            nothing = np.zeros((len(self.instance.classes), len(groups)))
            self._priced.add(groups)
            self._offer(self.pricer.decide(groups, nothing))

    def consider(self, groups: tuple[int, ...], rates: Floats | None = None) -> None:
        """Price one partition from its own relaxation (and from given rates)."""
        if len(groups) != len(self.instance.configurations) or not fits(self.instance, groups):
            return
        solution = self.bounder.at(groups)
        self.evaluated += 1
        if solution is None:
            return
        linear = self.bounder.linear
        starts = [linear.rates_of(solution.values)]
        if rates is not None:
            starts.append(rates)
        if groups in self._priced and rates is None:
            return
        self._priced.add(groups)
        for start in starts:
            self._offer(self._decide(groups, start))

    def _decide(self, groups: tuple[int, ...], rates: Floats, give_up_above: float = np.inf) -> Decision | None:
        decision = self.pricer.decide(groups, rates)
        while decision is None and rates.sum() > 1e-9:
            rates = rates * 0.7  # memory or fit forbids these rates whatever r: admit less, the polish refills
            decision = self.pricer.decide(groups, rates)
        return None if decision is None else self.polisher.polish(decision, give_up_above)

    def _offer(self, decision: Decision | None) -> None:
        if decision is None:
            return
        if self.best is None or self._rank(decision) < self._rank(self.best):
            if self.best is not None and self.best.groups != decision.groups:
                self.second = self.best
            self.best = decision
            self.report(decision)
        elif decision.groups != self.best.groups and (
            self.second is None or decision.objective < self.second.objective
        ):
            self.second = decision

    def _rank(self, decision: Decision) -> tuple[float, float, int, tuple[int, ...]]:
        """Cost first (equal within TIE of the best), then GPUs, then change from what runs."""
        reference = decision.objective if self.best is None else self.best.objective
        tied = abs(decision.objective - reference) <= TIE * abs(reference)
        gpus = sum(z * k.gpus for z, k in zip(decision.groups, self.instance.configurations, strict=True))
        moved = sum(abs(z - now) for z, now in zip(decision.groups, self.instance.running_counts, strict=True))
        return (reference if tied else decision.objective, float(gpus), moved, decision.groups)

    def climb(self, work: int, gap_met: Callable[[], bool]) -> None:
        """Move to better neighbours until none is left, the gap is met, or the counted work is spent."""
        stop_at = self.polisher.work + work
        while self.best is not None and not gap_met() and self._improve(self.best, stop_at):
            pass

    def _improve(self, centre: Decision, stop_at: int) -> bool:
        for groups in self._promising(centre)[:_TRIES]:
            if self.polisher.work >= stop_at or self.out_of_time():
                return False
            self._try(groups, centre)
            if self.best is not centre:
                return True
        return False

    def _promising(self, centre: Decision) -> list[tuple[int, ...]]:
        """Neighbours that no bound rules out, in the order of their first-order cost."""
        possible = self._not_ruled_out(centre, set(neighbours(self.instance, centre.groups)))
        if not possible:
            return []
        z, prices = np.array(centre.groups), self.polisher.group_prices(centre)
        return sorted(possible, key=lambda groups: (float(prices @ (np.array(groups) - z)), groups))

    def _not_ruled_out(self, centre: Decision, candidates: set[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Candidates that fit and whose bound, by the subgradient at the centre, is not above its cost."""
        relaxed = self.bounder.at(centre.groups)
        if relaxed is None:
            return []
        z, limit = np.array(centre.groups), self._limit(centre)
        level, slope = relaxed.objective + self.bounder.linear.offset, group_prices(self.bounder.linear, relaxed)
        return [
            groups
            for groups in sorted(candidates - self._priced)
            if level + float(slope @ (np.array(groups) - z)) <= limit and fits(self.instance, groups)
        ]

    def _limit(self, decision: Decision) -> float:
        return decision.objective + TIE * abs(decision.objective)

    def _try(self, groups: tuple[int, ...], centre: Decision, patience: float = _GIVE_UP) -> None:
        """Price a neighbour from the centre's rates; it may start above by ``patience`` times the gap."""
        self._priced.add(groups)
        self.evaluated += 1
        rates = centre.routing * self.pricer.constants.rates[:, None]
        margin = patience * max(0.0, centre.objective - self.bounder.bound)
        self._offer(self._decide(groups, rates, self._limit(centre) + margin))

    def finish(self) -> None:
        """Squeeze the last out of the incumbent."""
        if self.best is not None and not self.out_of_time():
            self._offer(self.polisher.finish(self.best))

    def trim(self) -> None:
        """Equal cost with fewer GPUs wins."""
        if self.best is None or self.out_of_time():
            return
        if self.best.objective <= self.bounder.bound + TIE * abs(self.best.objective):
            # The bound is tight, so the relaxation knows which partitions tie: ask it for the leanest.
            lean = self.bounder.leanest(self._limit(self.best), _LEAN_NODES)
            if lean is not None and lean.groups not in self._priced:
                self.consider(lean.groups, lean.rates)
        while self._drop_one():
            pass

    def _drop_one(self) -> bool:
        """Leave out one group that does not pay; False when every group does."""
        centre = self.best
        if centre is None:
            return False
        fewer = {_moved(centre.groups, k, -1, k, 0) for k, z in enumerate(centre.groups) if z}
        for groups in self._not_ruled_out(centre, fewer):
            if self.out_of_time():
                return False
            self._try(groups, centre, patience=0.0)
            if self.best is not centre:
                return True
        return False


def neighbours(instance: Instance, groups: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """One group more or less, one group of k for as many of j as its GPUs make, and the reverse."""
    count = len(groups)
    for k in range(count):
        yield _moved(groups, k, 1, k, 0)
        if groups[k]:
            yield _moved(groups, k, -1, k, 0)
    for k in range(count):
        for j in range(count):
            if j == k or not groups[k]:
                continue
            gk, gj = instance.configurations[k].gpus, instance.configurations[j].gpus
            yield _moved(groups, k, -1, j, 1)
            if gk > gj:
                yield _moved(groups, k, -1, j, gk // gj)
            elif gj > gk and groups[k] >= gj // gk:
                yield _moved(groups, k, -(gj // gk), j, 1)


def _moved(groups: tuple[int, ...], k: int, by_k: int, j: int, by_j: int) -> tuple[int, ...]:
    z = list(groups)
    z[k] += by_k
    z[j] += by_j
    return tuple(z)
