"""The certified method beside the literal one: `python -m tests.bench.bench_solver`.

Sizes of the paper's Table III and beyond. CPU seconds of one thread, medians over the seeds. Two settings of
each size: S = 1 and blocks of one token (the paper's model, the only one the literal method is run on), and
S = 64 with blocks of 16 tokens, where KV memory binds.
"""

import resource
import statistics
import subprocess
import sys
import time
from dataclasses import replace

from kvplan_solver.certificate import certify
from kvplan_solver.certified.method import solve_certified
from kvplan_solver.instance import Instance
from kvplan_solver.result import Options, Result
from tests.bench.bench_literal import run_literal
from tests.bench.instances import LARGE, TABLE_III, Size, table_iii_instance
from tests.bench.report import Row, cpu_seconds, table

SEEDS = (0, 1, 2, 3, 4)
GAP_TARGET = 0.001
LARGE_GAP_TARGET = 0.005
DRIFT = 1.1
"""Rates of the warm replan, as a multiple of the rates of the plan it starts from."""


def gap_target(size: Size) -> float:
    """The API's default for fleets beyond the paper's sizes, a fifth of it for the others."""
    return LARGE_GAP_TARGET if size in LARGE else GAP_TARGET


def solved(size: Size, instance: Instance, warm: Result | None = None) -> tuple[Result, float, float]:
    """Result, CPU seconds, and CPU seconds to the first plan that serves requests; certified before it counts."""
    options = Options(gap_target=gap_target(size), clock=time.process_time, warm_start=warm)
    results: list[Result] = []
    seconds = cpu_seconds(lambda: results.append(solve_certified(instance, options)))
    result = results[0]
    if not certify(instance, result, gap_target=options.gap_target).holds:
        raise AssertionError(f"{size}: the certificate does not hold")
    everything_rejected = result.trace[0].objective
    serving = next((p for p in result.trace if p.objective < everything_rejected), result.trace[0])
    return result, seconds, serving.seconds or 0.0


def faster(instance: Instance) -> Instance:
    """The same fleet with more traffic."""
    classes = tuple(replace(c, arrival_rate=c.arrival_rate * DRIFT) for c in instance.classes)
    return replace(instance, classes=classes)


def certified_row(size: Size, max_sequences: int, block_tokens: int) -> Row:
    """One size in one setting."""
    runs, warm_seconds = [], []
    for seed in SEEDS:
        instance = table_iii_instance(
            size.classes, size.configurations, size.samples, size.gpus, seed,
            max_sequences=max_sequences, block_tokens=block_tokens,
        )  # fmt: skip
        runs.append(solved(size, instance))
        cold, warm = solved(size, faster(instance)), solved(size, faster(instance), runs[-1][0])
        warm_seconds.append(warm[1] / cold[1])
    gaps = [result.gap for result, _, _ in runs]
    return {
        "size": str(size),
        "S, block": f"{max_sequences}, {block_tokens}",
        "median s": f"{statistics.median(s for _, s, _ in runs):.2f}",
        "worst s": f"{max(s for _, s, _ in runs):.2f}",
        "first serving plan, s": f"{statistics.median(f for _, _, f in runs):.2f}",
        "warm/cold": f"{statistics.median(warm_seconds):.2f}",
        "median gap": f"{statistics.median(gaps):.3%}",
        "worst gap": f"{max(gaps):.3%}",
    }


def literal_row(size: Size) -> Row:
    """Algorithm 1 and the certified method on the same instances."""
    seeds = SEEDS if size.samples < 2000 else SEEDS[:1]
    literal = [run_literal(size, seed) for seed in seeds]
    certified = [
        solved(
            size,
            table_iii_instance(size.classes, size.configurations, size.samples, size.gpus, seed, block_tokens=1),
        )
        for seed in seeds
    ]
    ratio = [a.result.objective / b[0].objective for a, b in zip(literal, certified, strict=True)]
    slow, quick = statistics.median(r.seconds for r in literal), statistics.median(c[1] for c in certified)
    return {
        "size": str(size),
        "seeds": str(len(seeds)),
        "paper's BCD, s": f"{size.paper_seconds}",
        "literal, s": f"{slow:.2f}",
        "certified, s": f"{quick:.2f}",
        "literal/certified time": f"{slow / quick:.1f}",
        "literal/certified cost": f"{statistics.median(ratio):.3f} (worst {max(ratio):.3f})",
    }


def peak_memory_mib() -> int:
    """Peak resident memory of a fresh interpreter that solves the largest size, MiB."""
    code = "from tests.bench.bench_solver import solve_largest; solve_largest()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout)


def solve_largest() -> None:
    """Solve the largest size once and print this process's peak memory, MiB."""
    size = LARGE[-1]
    instance = table_iii_instance(
        size.classes, size.configurations, size.samples, size.gpus, 0, max_sequences=64, block_tokens=16
    )
    solved(size, instance)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def section() -> str:
    """All figures as Markdown."""
    rows = [certified_row(size, s, b) for size in (*TABLE_III, *LARGE) for s, b in ((1, 1), (64, 16))]
    return "\n".join(
        [
            f"Seeds {SEEDS}. Gap target {GAP_TARGET:.1%}, for the two largest sizes {LARGE_GAP_TARGET:.1%}.",
            f"*Warm* is a replan after all rates grew by {DRIFT - 1:.0%}, started from the old plan;",
            "*cold* is the same without it.",
            "",
            table("Certified", rows),
            f"Peak memory at {LARGE[-1]}: {peak_memory_mib()} MiB.",
            "",
            table(
                "Literal (Algorithm 1 as printed) against certified, S = 1",
                [literal_row(size) for size in TABLE_III],
            ),
        ]
    )


if __name__ == "__main__":
    print(section())
