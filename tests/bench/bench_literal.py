"""Algorithm 1 as printed, on one instance of a size of Table III; ``bench_solver`` reports it.

CPU seconds of one thread. The start z⁽⁰⁾ is the method's default (one group of each configuration in turn).
"""

from dataclasses import dataclass

from kvplan_solver.literal import solve_literal
from kvplan_solver.result import Options, Result
from tests.bench.instances import Size, table_iii_instance
from tests.bench.report import cpu_seconds


@dataclass(frozen=True)
class Run:
    """One instance solved by the literal method."""

    size: Size
    seed: int
    seconds: float
    result: Result


def run_literal(size: Size, seed: int, max_sequences: int = 1) -> Run:
    """Solve one instance and time it."""
    instance = table_iii_instance(
        size.classes, size.configurations, size.samples, size.gpus, seed, max_sequences=max_sequences
    )
    results: list[Result] = []
    seconds = cpu_seconds(lambda: results.append(solve_literal(instance, Options())))
    return Run(size, seed, seconds, results[0])
