"""The closed form of one class against LP (22): `python -m tests.bench.bench_newsvendor`.

Times are CPU seconds of one thread: 100 classes × 10,000 lognormal samples in closed form, sorting them included,
then both for one class at growing sample counts, already sorted (LP (22) by HiGHS).
"""

import statistics
from dataclasses import dataclass, replace

import numpy as np

from kvplan_solver.instance import Ambiguity, ClassInput, clip_samples
from kvplan_solver.newsvendor import robust_order
from tests.bench.report import Row, cpu_seconds, table
from tests.property.newsvendor_lp import block_costs, lp_22

LIMIT = 8192
SAMPLE_COUNTS = (100, 1_000, 10_000)


@dataclass(frozen=True)
class Comparison:
    """CPU seconds per class at one sample count, and how far the two answers differ."""

    samples: int
    closed_form_seconds: float
    linear_program_seconds: float
    relative_difference: float

    @property
    def ratio(self) -> float:
        """How many times faster the closed form is."""
        return self.linear_program_seconds / self.closed_form_seconds

    def as_text(self) -> Row:
        """The row of the report."""
        return {
            "samples": f"{self.samples:,}",
            "closed form, s": f"{self.closed_form_seconds:.6f}",
            "LP (22), s": f"{self.linear_program_seconds:.3f}",
            "LP/closed form": f"{self.ratio:,.0f}",
            "relative difference": f"{self.relative_difference:.1e}",
        }


def lognormal_class(samples: int, seed: int) -> ClassInput:
    """BurstGPT-like output lengths, the paper's costs and radius."""
    rng = np.random.default_rng(seed)
    lengths, _ = clip_samples(np.round(rng.lognormal(3.476, 1.674, samples)), LIMIT)
    return ClassInput(
        name="c", arrival_rate=1.0, input_tokens_mean=0.0, input_tokens_p95=0, input_tokens_max=0,
        shared_prefix_tokens=0, max_output_tokens=LIMIT, output_lengths=lengths, latency_slo_seconds=1.0,
        radius=0.15 * float(lengths.mean()),
    )  # fmt: skip


def closed_form_seconds(classes: int = 100, samples: int = 10_000, repeats: int = 5) -> float:
    """Median CPU seconds for all classes together, from unsorted samples."""
    template = lognormal_class(samples, 0)
    rng = np.random.default_rng(1)
    unsorted = [rng.permutation(lognormal_class(samples, seed).output_lengths) for seed in range(classes)]

    def work() -> None:
        _orders([replace(template, output_lengths=clip_samples(x, LIMIT)[0]) for x in unsorted])

    return statistics.median(cpu_seconds(work) for _ in range(repeats))


def compare(samples: int, seed: int = 0) -> Comparison:
    """Closed form and LP on the same class."""
    c = lognormal_class(samples, seed)
    closed = statistics.median(cpu_seconds(lambda: _orders([c])) for _ in range(5))
    optimum: list[float] = []
    linear = cpu_seconds(lambda: optimum.append(_linear_program_optimum(c)))
    cost = robust_order(c, Ambiguity.WASSERSTEIN_1).cost
    return Comparison(samples, closed, linear, abs(cost - optimum[0]) / cost)


def _orders(inputs: list[ClassInput]) -> None:
    for c in inputs:
        robust_order(c, Ambiguity.WASSERSTEIN_1)


def _linear_program_optimum(c: ClassInput) -> float:
    solution = lp_22(c, np.zeros(1), np.array([float(LIMIT)]))
    return float(block_costs(c, solution)[0])


def section() -> str:
    """All figures as Markdown."""
    rows = [compare(samples) for samples in SAMPLE_COUNTS]
    return "\n".join(
        [
            f"100 classes × 10,000 samples in closed form, sorting included: {closed_form_seconds():.4f} s.",
            "",
            table("Closed form against LP (22) by HiGHS, one class", [row.as_text() for row in rows]),
        ]
    )


if __name__ == "__main__":
    print(section())
