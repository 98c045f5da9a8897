"""LP1 of Block 1: fix γ, θ, r; optimise π and s.

(6f) contains π·W(π), which no linear program can hold: W is frozen at the previous π. The answer is
therefore a proposal, which the alternation takes only if the true objective falls.
"""

from dataclasses import replace

import numpy as np

from kvplan_solver.backends.highs import INFINITY, LinearProgram
from kvplan_solver.instance import Floats
from kvplan_solver.literal.decision import Decision, Problem
from kvplan_solver.literal.lp2 import robust_loss
from kvplan_solver.memory import effective_tokens
from kvplan_solver.queueing import waiting_seconds

_DUST = 1e-9


def propose_routing(problem: Problem, at: Decision, time_limit: float | None = None) -> Decision | None:
    """π that is best for the frozen W and loss; None when the LP found none in time."""
    program = _program(problem, at)
    solution = program.solve(time_limit=time_limit)
    if not solution.optimal:
        return None
    routing = _clean(solution.values[: at.routing.size].reshape(at.routing.shape))
    return problem.priced(replace(at, routing=routing))


def _clean(routing: Floats) -> Floats:
    """Drop what is below the LP's tolerance; never more than all of a class."""
    kept = np.where(routing > _DUST, routing, 0.0)
    return np.asarray(kept / np.maximum(1.0, kept.sum(axis=1))[:, None])


def _program(problem: Problem, at: Decision) -> LinearProgram:
    """Columns: π row by row, then s."""
    classes, configurations = at.routing.shape
    upper = np.concatenate((problem.allowed(at).ravel().astype(np.float64), np.full(classes, INFINITY)))
    program = LinearProgram(_costs(problem, at), np.zeros(len(upper)), upper)
    pair = np.eye(classes * configurations).reshape(classes, configurations, -1)
    _add_class_rows(program, problem, at, pair)
    _add_configuration_rows(program, problem, at, pair)
    return program


def _costs(problem: Problem, at: Decision) -> Floats:
    """(8a) in π and s, less the constant λ·c_rej of rejecting everything."""
    k = problem.constants
    per_request = (robust_loss(problem, at) - k.rejection_weight)[:, None] + k.gpu_cost
    return np.concatenate(((k.rates[:, None] * per_request).ravel(), k.rates * k.latency_weight))


def _add_class_rows(program: LinearProgram, problem: Problem, at: Decision, pair: Floats) -> None:
    """(6d): Σ_k π ≤ 1; and (6f): Σ_k π(W + T − D) − s ≤ 0."""
    k, classes = problem.constants, len(pair)
    none = np.full(classes, -INFINITY)
    admitted = pair.sum(axis=1)
    W = waiting_seconds(problem.rates(at), k.T, at.z, k.slots, k.v)
    late = ((W[None, :] + k.T - k.slo[:, None])[:, :, None] * pair).sum(axis=1)
    program.add_dense_rows(none, np.ones(classes), np.hstack((admitted, np.zeros((classes, classes)))))
    program.add_dense_rows(none, np.zeros(classes), np.hstack((late, -np.eye(classes))))


def _add_configuration_rows(program: LinearProgram, problem: Problem, at: Decision, pair: Floats) -> None:
    """Add u ≤ u_max and (6e) as shares of their right sides, for the deployed configurations."""
    instance, k = problem.instance, problem.constants
    used = at.z > 0
    load = (k.rates[:, None] * k.T) / np.where(used, at.z, 1.0)[None, :]
    busy = load / (k.slots * instance.max_utilisation)[None, :]
    held = effective_tokens(instance, at.reservation, at.cached)
    left = np.maximum(problem.memory_left(at.cached), _DUST)
    memory = (1 + instance.headroom) * load * held / left[None, :]
    for share in (busy, memory):
        rows = (share[:, :, None] * pair).sum(axis=0)[used]
        padded = np.hstack((rows, np.zeros((len(rows), len(pair)))))
        program.add_dense_rows(np.full(len(rows), -INFINITY), np.ones(len(rows)), padded)
