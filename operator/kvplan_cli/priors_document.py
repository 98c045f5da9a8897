"""The snapshot document: which groups are estimated, at which points, and how the file is written.

Needs: the extra ``kvplan[priors]``. Output: a JSON document with its provenance, as
``kvplan_operator.model.priors.profile`` reads it; the same bytes for the same library version.
Must not: be imported where the extra may be missing.
"""

import json
from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import Any

from kvplan_cli.priors_estimator import (
    BACKEND,
    BATCHED_TOKENS,
    MAX_SEQUENCES,
    MEMORY_UTILISATION_MILLI,
    MIXTURE_MODELS,
    SYSTEMS,
    Estimator,
    Target,
)
from kvplan_operator.model.priors.profile import SNAPSHOT_FORMAT
from kvplan_solver.units import to_micro

LIBRARY = "aiconfigurator-core"
COMMAND = "python -m kvplan_cli.priors_snapshot"
BATCH = (1, 2, 4, 8, 16, 32, 64, 128, 256)
LENGTHS = tuple((prompt, output) for prompt in (500, 2000, 8000) for output in (100, 500, 2000))
TENSOR_PARALLEL = (1, 2, 4, 8)
SIGNIFICANT_DIGITS = 4
DENSE_MODELS = (
    "Qwen/Qwen3-8B",
    "Qwen/Qwen3-32B",
    "meta-llama/Meta-Llama-3.1-8B",
    "meta-llama/Meta-Llama-3.1-70B",
    "nvidia/Llama-3.1-70B-Instruct-FP8",
)
UNITS = (
    "lengths are [prompt, output] tokens; latencies are microseconds to 4 significant digits, one row per "
    "length pair, one column per batch; kvCapacityTokens is per group"
)


def targets() -> Iterator[Target]:
    """All groups to try, in the order of the file."""
    for model in sorted(DENSE_MODELS + MIXTURE_MODELS):
        for system in sorted(SYSTEMS):
            for tensor_parallel in TENSOR_PARALLEL:
                yield Target(model, system, tensor_parallel)


def profile_entry(target: Target) -> dict[str, Any]:
    """The entry of one target.

    Raises:
        Exception: whatever the library raises where it has no data or the weights do not fit.
    """
    estimator = Estimator(target)
    grid = [[estimator.latency(batch, *lengths) for batch in BATCH] for lengths in LENGTHS]
    return {
        "model": target.model,
        "system": target.system,
        "tensorParallel": target.tensor_parallel,
        "kvCapacityTokens": estimator.kv_capacity_tokens(),
        "firstTokenMicroseconds": [[_micro(x.first_token_seconds) for x in row] for row in grid],
        "tokenMicroseconds": [[_micro(x.token_seconds) for x in row] for row in grid],
    }


def build_document() -> tuple[dict[str, Any], list[str]]:
    """The whole snapshot, and one line per target that the library could not estimate."""
    entries, skipped = [], []
    for target in targets():
        try:
            entries.append(profile_entry(target))
        except Exception as error:  # the library's errors have no common base class
            skipped.append(f"{target.model} on {target.system} TP {target.tensor_parallel}: {_kind(error)}")
    return {**_header(), "profiles": entries}, skipped


def render(document: Mapping[str, Any]) -> str:
    """Compact JSON with one profile per line, so that a change of one profile is a change of one line."""
    header = {key: value for key, value in document.items() if key != "profiles"}
    head = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in header.items())
    lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in document["profiles"])
    return f'{{\n{head},\n "profiles": [\n{lines}\n]}}\n'


def _header() -> dict[str, Any]:
    return {
        "format": SNAPSHOT_FORMAT,
        "provenance": {
            "library": f"{LIBRARY} {metadata.version(LIBRARY)}",
            "backend": BACKEND,
            "data": SYSTEMS,
            "command": COMMAND,
            "memoryUtilisationMilli": MEMORY_UTILISATION_MILLI,
            "batchedTokens": BATCHED_TOKENS,
            "maxSequences": MAX_SEQUENCES,
            "units": UNITS,
        },
        "batch": list(BATCH),
        "lengths": [list(pair) for pair in LENGTHS],
    }


def _kind(error: Exception) -> str:
    """The first clause of the library's message, without the paths and numbers that follow it."""
    return f"{type(error).__name__}: {str(error).split(' (', 1)[0].split(' for ', 1)[0]}"


def _micro(seconds: float) -> int:
    return to_micro(float(f"{seconds:.{SIGNIFICANT_DIGITS}g}"))
