"""Where Algorithm 1 stops from different starts, beside the certified plan of the same instance.

Inputs: an instance. Output: one row per start z⁽⁰⁾, computed live. It shows what the literal method's docs
state: blocks never open a configuration without groups, an all-reject start stays, and the end depends on
the start. ``example_instance`` is a stated one, generated from fixed seeds. Pure.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kvplan_solver.instance import ClassInput, ConfigurationInput, Floats, Instance, NodeInput, clip_samples
from kvplan_solver.packing import fits
from kvplan_solver.result import Method, Options, Result
from kvplan_solver.solve import solve

Groups = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Ending:
    """What one run ended with.

    Attributes:
        start: z⁽⁰⁾ in words.
        result: of the literal method, or of the certified one for comparison.
        ratio: its cost over the certified one's.
    """

    start: str
    result: Result
    ratio: float


def endings(instance: Instance) -> list[Ending]:
    """The certified plan, then the literal method from every start of ``starts``.

    Raises:
        EnumerationTooLarge: the instance has too many partitions for Algorithm 1.
        InvalidInput: the instance hedges against another set than Wasserstein1.
    """
    best = solve(instance, Options())
    found = [Ending("(certified method)", best, 1.0)]
    for words, groups in starts(instance):
        result = solve(instance, Options(method=Method.LITERAL, initial_groups=groups))
        found.append(Ending(words, result, result.objective / best.objective if best.objective else 1.0))
    return found


def starts(instance: Instance) -> Iterator[tuple[str, Groups | None]]:
    """Nothing, one group of each configuration alone, and a mix of all."""
    count = len(instance.configurations)
    yield "no group at all", (0,) * count
    for k, configuration in enumerate(instance.configurations):
        alone = tuple(int(k == other) for other in range(count))
        if fits(instance, alone):
            yield f"one {configuration.name}", alone
    yield "some of each", None


def example_instance() -> Instance:
    """Three classes on sixteen GPUs: Poisson arrivals, lognormal outputs of 400 samples each, seeds 1 to 3.

    The groups are those of a model with 33 GFLOP a token half-used and 66 GB of weights read a token, on
    two nodes of eight GPUs, one sequence at a time as in the paper.
    """
    return Instance(
        classes=(
            _example_class("chat", (2.0, 15.0), (800, 1_600, 3_000, 256), _lengths(4.9, 0.9, 1_024, seed=1)),
            _example_class("code", (1.2, 4.0), (1_200, 3_000, 5_000, 0), _lengths(2.8, 0.8, 1_024, seed=2)),
            _example_class("summarise", (0.6, 30.0), (2_400, 3_800, 5_000, 0), _lengths(5.2, 0.8, 2_048, seed=3)),
        ),
        configurations=tuple(_example_configuration(tau) for tau in (1, 2, 4)),
        nodes=(NodeInput("node-1", 8), NodeInput("node-2", 8)),
    )


def _example_class(
    name: str, rate_and_slo: tuple[float, float], prompt: tuple[int, int, int, int], lengths: tuple[Floats, int]
) -> ClassInput:
    samples, limit = lengths
    mean, p95, longest, shared = prompt
    return ClassInput(
        name, rate_and_slo[0], mean, p95, longest, shared, limit, samples, rate_and_slo[1],
        radius=0.15 * float(samples.mean()),
    )  # fmt: skip


def _lengths(mu: float, sigma: float, limit: int, *, seed: int) -> tuple[Floats, int]:
    drawn = np.random.default_rng(seed).lognormal(mu, sigma, 400)
    return clip_samples(np.round(drawn), limit)[0], limit


def _example_configuration(tau: int) -> ConfigurationInput:
    return ConfigurationInput(
        name=f"tp{tau}",
        tensor_parallel=tau,
        pipeline_parallel=1,
        kv_capacity_tokens=28_000 * tau - 8_000,
        prefill_seconds_per_token=66e9 / (tau * 400e12),
        decode_seconds_per_token=66e9 / (tau * 3.3e12 * 0.8 * tau**-0.15),
    )
