"""Hard limits from observed lengths: a trace shows what was asked, not what may be asked.

Input: a ``ClassWorkload``. Output: ``maxOutput`` and ``inputMax`` with headroom, and the sentence that says how they
came about. The longest seen, or twice the P99 (of prompts: P95), whichever is larger, goes up to the next of 16, 24,
32, 48, 64, … tokens; a limit that was stated is kept. Pure.
"""

import math

import numpy as np

from kvplan_operator.model.workload import ClassWorkload

HEADROOM = 2
"""Limit over the length that nearly all requests stay within."""


def fitted_max_output(workload: ClassWorkload) -> int:
    """Longest output to allow, tokens."""
    if workload.max_output_stated:
        return workload.max_output_tokens
    p99 = float(np.quantile(workload.output_lengths.samples, 0.99, method="inverted_cdf"))
    return next_step(max(workload.max_output_tokens, HEADROOM * p99))


def fitted_max_input(workload: ClassWorkload) -> int | None:
    """Longest prompt to allow, tokens; None where the source has no prompts."""
    prompt = workload.prompt
    return None if prompt is None else next_step(max(prompt.maximum, HEADROOM * prompt.p95))


def limits_note(workload: ClassWorkload) -> str:
    """How the limits came about, for the manifest and the report."""
    parts = []
    if not workload.max_output_stated:
        seen = workload.max_output_tokens
        parts.append(f"maxOutput {fitted_max_output(workload)} (longest seen {seen}, or twice its P99, rounded up)")
    if workload.prompt is not None:
        seen = workload.prompt.maximum
        parts.append(f"inputMax {fitted_max_input(workload)} (longest seen {seen}, or twice its P95, rounded up)")
    return f"limits with headroom: {', '.join(parts)}" if parts else ""


def next_step(tokens: float) -> int:
    """The smallest of 16, 24, 32, 48, 64, … not below some tokens."""
    power = 16
    while power < tokens:
        power *= 2
    between = power * 3 // 4
    return between if power > 16 and between >= math.ceil(tokens) else power
