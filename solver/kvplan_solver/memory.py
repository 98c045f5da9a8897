"""KV memory: the capacity row (6e), the fit of one request, and the caching rule δ (02-solver §1).

All lengths are in whole KV blocks through ``budget``, so that solver, certificate and ledger agree.
"""

import numpy as np

from kvplan_solver.budget import ceil_to_block, floor_to_block, group_budget_tokens
from kvplan_solver.instance import Floats, Instance
from kvplan_solver.result import Bools


def longest_request_tokens(instance: Instance) -> Floats:
    """Longest prompt + longest output per class, length I: what ``max-model-len`` must allow."""
    return np.array([float(c.input_tokens_max + c.max_output_tokens) for c in instance.classes])


def eligible(instance: Instance) -> Bools:
    """Whether the longest request of i fits one group of k, (I, K); else vLLM refuses to start."""
    capacity = np.array([k.kv_capacity_tokens for k in instance.configurations])
    return np.asarray(longest_request_tokens(instance)[:, None] <= capacity[None, :])


def prefix_tokens(instance: Instance) -> Floats:
    """floor(Lpre/B)·B per class, length I."""
    return np.array([float(floor_to_block(c.shared_prefix_tokens, instance.block_tokens)) for c in instance.classes])


def concurrency(rates: Floats, T: Floats, groups: Floats) -> Floats:
    """Little's law: requests of i in flight on one group of k, shape (I, K); 0 where z = 0."""
    z = np.asarray(groups, dtype=np.float64)
    return np.asarray(np.where(z > 0, rates * T / np.where(z > 0, z, 1.0), 0.0))


def cached_prefixes(instance: Instance, in_flight: Floats) -> Bools:
    """δ_ik = 1 iff (1+κ)·concurrency_ik > 1 and there is a whole block to share: exact for (6e)."""
    worthwhile = (1 + instance.headroom) * in_flight > 1
    return np.asarray(worthwhile & (prefix_tokens(instance) > 0)[:, None])


def effective_tokens(instance: Instance, reservation: Floats, cached: Bools) -> Floats:
    """R̃, tokens, shape (I, K)."""
    held = np.array([float(ceil_to_block(r, instance.block_tokens)) for r in reservation])
    return np.asarray(held[:, None] - cached * prefix_tokens(instance)[:, None])


def mean_held_tokens(instance: Instance, reservation: Floats, cached: Bools) -> Floats:
    """What a request with its class's mean prompt takes from the ledger, tokens, shape (I, K) (docs/decisions/0009)."""
    shorter = (max(0.0, c.input_tokens_p95 - c.input_tokens_mean) for c in instance.classes)
    spared = np.array([float(floor_to_block(tokens, instance.block_tokens)) for tokens in shorter])
    return np.asarray(effective_tokens(instance, reservation, cached) - spared[:, None])


def memory_tokens(instance: Instance, in_flight: Floats, reservation: Floats, cached: Bools) -> Floats:
    """Left side of (6e) per group, tokens, length K."""
    held = (in_flight * effective_tokens(instance, reservation, cached)).sum(axis=0)
    pinned = (cached * prefix_tokens(instance)[:, None]).sum(axis=0)
    return np.asarray((1 + instance.headroom) * held + pinned)


def budgets(instance: Instance, cached: Bools) -> Floats:
    """Q_k, tokens, length K."""
    return np.array(
        [
            float(
                group_budget_tokens(
                    k.kv_capacity_tokens,
                    (c.shared_prefix_tokens for i, c in enumerate(instance.classes) if cached[i, column]),
                    instance.block_tokens,
                )
            )
            for column, k in enumerate(instance.configurations)
        ]
    )
