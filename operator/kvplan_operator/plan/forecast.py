"""What a plan promises: load of the groups, waiting and response of the classes, preemption and waste.

Inputs: a frozen instance and a result on it. Output: plain frozen numbers, SI units and tokens. The equations
are the solver's: (1), (6e), (7). Pure.
"""

from dataclasses import dataclass

import numpy as np

from kvplan_solver.cost import Coefficients
from kvplan_solver.instance import ClassInput, Floats, Instance
from kvplan_solver.memory import budgets, concurrency, mean_held_tokens, memory_tokens
from kvplan_solver.queueing import utilisation, waiting_seconds
from kvplan_solver.result import Result


@dataclass(frozen=True)
class ClassForecast:
    """One class under the plan.

    Attributes:
        name: of the class.
        requests_per_second: λ.
        admitted: share that is admitted, 0 to 1.
        response_seconds: mean from arrival to last token of admitted requests, W + T; None where none is.
        waiting_seconds: the part of it spent waiting; None where none is admitted.
        slo_seconds: D.
        overflow_share: admitted requests that outgrow their reservation, by the samples, 0 to 1.
        preempted_tokens: mean tokens beyond the reservation per request, by the samples.
        wasted_tokens: mean reserved tokens left unused per request, by the samples.
    """

    name: str
    requests_per_second: float
    admitted: float
    response_seconds: float | None
    waiting_seconds: float | None
    slo_seconds: float
    overflow_share: float
    preempted_tokens: float
    wasted_tokens: float


@dataclass(frozen=True)
class GroupForecast:
    """The groups of one configuration under the plan; figures are per group.

    Attributes:
        configuration: its name.
        groups: z.
        utilisation: busy share of the sequences, u.
        memory_share: left side of (6e) over M_k.
        waiting_seconds: W.
        in_flight: requests running at once.
        mean_reservation_tokens: r̄ over those at the mean prompt of their classes, tokens.
        budget_tokens: Q_k.
        requests_per_second: rate one group serves.
    """

    configuration: str
    groups: int
    utilisation: float
    memory_share: float
    waiting_seconds: float
    in_flight: float
    mean_reservation_tokens: float
    budget_tokens: int
    requests_per_second: float


@dataclass(frozen=True)
class Forecast:
    """All classes and all configurations with groups, in the instance's order."""

    classes: tuple[ClassForecast, ...]
    groups: tuple[GroupForecast, ...]


def forecast(instance: Instance, result: Result) -> Forecast:
    """The promises of a result."""
    constants = Coefficients(instance)
    rates = result.routing * constants.rates[:, None]
    z = np.array(result.groups, dtype=np.float64)
    W = waiting_seconds(rates, constants.T, z, constants.slots, constants.v)
    classes = tuple(
        _class(c, result.reservation_tokens[i], result.routing[i], W, constants.T[i])
        for i, c in enumerate(instance.classes)
    )
    return Forecast(classes, _groups(instance, result, constants, rates, W))


def _class(c: ClassInput, reservation: int, shares: Floats, W: Floats, T: Floats) -> ClassForecast:
    admitted = float(shares.sum())
    used = shares > 0
    waiting = float((shares[used] * W[used]).sum()) / admitted if admitted > 0 else None
    service = float((shares[used] * T[used]).sum()) / admitted if admitted > 0 else None
    beyond = c.output_lengths - (reservation - c.input_tokens_p95)
    return ClassForecast(
        name=c.name,
        requests_per_second=c.arrival_rate,
        admitted=admitted,
        response_seconds=None if waiting is None or service is None else waiting + service,
        waiting_seconds=waiting,
        slo_seconds=c.latency_slo_seconds,
        overflow_share=float((beyond > 0).mean()),
        preempted_tokens=float(beyond.clip(0).mean()),
        wasted_tokens=float((-beyond).clip(0).mean()),
    )


def _groups(
    instance: Instance, result: Result, constants: Coefficients, rates: Floats, W: Floats
) -> tuple[GroupForecast, ...]:
    z = np.array(result.groups, dtype=np.float64)
    reservation = np.array(result.reservation_tokens, dtype=np.float64)
    in_flight = concurrency(rates, constants.T, z)
    u = utilisation(rates, constants.T, z, constants.slots)
    used = memory_tokens(instance, in_flight, reservation, result.cached)
    held = mean_held_tokens(instance, reservation, result.cached)
    budget = budgets(instance, result.cached)
    return tuple(
        GroupForecast(
            configuration=k.name,
            groups=result.groups[n],
            utilisation=float(u[n]),
            memory_share=float(used[n]) / k.kv_capacity_tokens,
            waiting_seconds=float(W[n]),
            in_flight=float(in_flight[:, n].sum()),
            mean_reservation_tokens=_weighted(held[:, n], in_flight[:, n]),
            budget_tokens=int(budget[n]),
            requests_per_second=float(rates[:, n].sum()) / result.groups[n],
        )
        for n, k in enumerate(instance.configurations)
        if result.groups[n]
    )


def _weighted(values: Floats, weights: Floats) -> float:
    total = float(weights.sum())
    return float(values @ weights) / total if total > 0 else 0.0
