"""How far the priors are from the snapshot's latencies: ``python -m kvplan_cli.priors_report``.

Output: the Markdown tables of docs/decisions/0004-hardware-priors.md: mean / worst relative error of the
service time per model, GPU and tensor parallelism. Needs the shipped snapshot only.
"""

import argparse
import sys
from collections.abc import Callable, Iterator

from kvplan_operator.api.fleet_engine import Model
from kvplan_operator.model.priors.fit import FitError, curve_error, fit_curve, fit_linear
from kvplan_operator.model.priors.formula import Assumptions, Group, formula_curve, kv_capacity_tokens
from kvplan_operator.model.priors.gpus import find_gpu
from kvplan_operator.model.priors.models import resolve_model
from kvplan_operator.model.priors.profile import Profile, bundled_snapshot

TENSOR_PARALLEL = (1, 2, 4, 8)
LOWEST, HIGHEST = 1, 256
NARROW = (8, 32)


def curve_cell(profile: Profile) -> str:
    """Error of the fitted curve, each batch with its own line."""
    return _percent(curve_error(profile, fit_curve(profile), LOWEST, HIGHEST))


def line_cell(profile: Profile) -> str:
    """Error of one line for all batches from 8 to 32."""
    return _percent(fit_linear(profile, *NARROW).error)


def formula_cell(profile: Profile) -> str:
    """Error of the formula prior."""
    curve = formula_curve(_group(profile), Assumptions())
    return _percent(curve_error(profile, curve, LOWEST, HIGHEST))


def capacity_cell(profile: Profile) -> str:
    """KV tokens by the formula over those of the estimator."""
    computed = kv_capacity_tokens(_group(profile), Assumptions())
    return f"{computed / profile.kv_capacity_tokens - 1:+.0%}"


def worst_cell(profile: Profile) -> str:
    """Where the fitted curve is worst: batch × prompt/output tokens."""
    error = curve_error(profile, fit_curve(profile), LOWEST, HIGHEST)
    lengths = f"{error.worst_input_tokens}/{error.worst_output_tokens}"
    return f"{error.worst:.0%} at {error.worst_batch} × {lengths}"


TABLES: dict[str, Callable[[Profile], str]] = {
    "curve": curve_cell,
    "worst": worst_cell,
    "line": line_cell,
    "formula": formula_cell,
    "capacity": capacity_cell,
}


def table(cell: Callable[[Profile], str]) -> Iterator[str]:
    """One row per model and GPU, one column per tensor parallelism."""
    snapshot = bundled_snapshot()
    yield "| model | GPU | " + " | ".join(f"TP {tau}" for tau in TENSOR_PARALLEL) + " |"
    yield "|---|---|" + "---|" * len(TENSOR_PARALLEL)
    for model, system in sorted({(key.model, key.system) for key in snapshot.profiles}):
        found = [snapshot.find(model, system, tau) for tau in TENSOR_PARALLEL]
        cells = ["–" if profile is None else cell(profile) for profile in found]
        yield f"| {model} | {system} | " + " | ".join(cells) + " |"


def main(arguments: list[str] | None = None) -> int:
    """Print the chosen tables."""
    parser = argparse.ArgumentParser(description="Errors of the hardware priors against the snapshot.")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"any of {', '.join(TABLES)}; default all")
    chosen = parser.parse_args(arguments).tables or list(TABLES)
    unknown = [name for name in chosen if name not in TABLES]
    if unknown:
        sys.stderr.write(f"unknown table {unknown[0]!r}: use any of {', '.join(TABLES)}\n")
        return 2
    for name in chosen:
        summary = (TABLES[name].__doc__ or "").strip()
        sys.stdout.write(f"\n{summary}\n\n" + "\n".join(table(TABLES[name])) + "\n")
    return 0


def _group(profile: Profile) -> Group:
    return Group(
        model=resolve_model(Model(preset=profile.key.model)),
        gpu=find_gpu("", profile.key.system),
        tensor_parallel=profile.key.tensor_parallel,
    )


def _percent(error: FitError) -> str:
    return f"{error.mean:.0%} / {error.worst:.0%}"


if __name__ == "__main__":
    sys.exit(main())
