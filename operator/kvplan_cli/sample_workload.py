"""The sample workload: chat, code and summarise, from real traces where they lie, else generated.

Inputs: a data directory (``KVPLAN_DATA``, default ``../shared/data`` beside the repository) and a seed.
Output: three fitted classes and a sentence per class on where it comes from. It reads files, writes none.

Real traces:
- chat: ``azure2023_conv`` (arrivals and lengths); keys and shared prefix from ``mooncake_conversation``, with
  rates scaled to the class and reuse capped at its P95 prompt, because the two were recorded apart.
- code: ``azure2023_code``.
- summarise: ``lengths_arxiv_summarization``, which has no times: Poisson arrivals at a stated rate.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kvplan_cli.sample_generated import GENERATED, generated_trace
from kvplan_cli.traces import load_trace
from kvplan_operator.model.fitting import FitOptions, fit_trace
from kvplan_operator.model.prefixes import KeyRates
from kvplan_operator.model.workload import ClassWorkload

SUMMARISE_REQUESTS_PER_SECOND = 1.0
"""Stated: the summarisation data has no arrival times."""
_FILES = (
    "azure2023_conv.csv.gz",
    "azure2023_code.csv.gz",
    "lengths_arxiv_summarization.csv.gz",
    "mooncake_conversation.jsonl.gz",
)


@dataclass(frozen=True, eq=False)
class SampleWorkload:
    """The three classes of the sample.

    Attributes:
        workloads: chat, code and summarise.
        remarks: (class, sentence) on the source of each and on anything the readers found.
        real: whether real traces were used.
    """

    workloads: tuple[ClassWorkload, ...]
    remarks: tuple[tuple[str, str], ...]
    real: bool


def sample_workload(seed: int = 0, data: Path | None = None) -> SampleWorkload:
    """The sample: real when every trace is there, generated otherwise; the same seed gives the same sample.

    Args:
        seed: of the generated requests and of the bootstrap.
        data: directory of the traces; ``data_directory()`` if absent.

    Raises:
        TraceError: the traces are there but damaged.
    """
    directory = data_directory() if data is None else data
    missing = [name for name in _FILES if not (directory / name).is_file()]
    return _generated(seed, missing) if missing else _real(directory, seed)


def data_directory() -> Path:
    """Where real traces are looked for."""
    stated = os.environ.get("KVPLAN_DATA")
    return Path(stated) if stated else Path(__file__).resolve().parents[2].parent / "shared" / "data"


def _real(directory: Path, seed: int) -> SampleWorkload:
    options = FitOptions(seed=seed)
    summarised = replace(options, requests_per_second=SUMMARISE_REQUESTS_PER_SECOND)
    chat, chat_remarks = _fitted(directory / _FILES[0], "chat", options)
    code, code_remarks = _fitted(directory / _FILES[1], "code", options)
    summarise, summarise_remarks = _fitted(directory / _FILES[2], "summarise", summarised)
    keyed, key_remarks = _fitted(directory / _FILES[3], "chat", replace(options, windows=1))
    return SampleWorkload(
        workloads=(_with_keys_of(chat, keyed), code, summarise),
        remarks=(*chat_remarks, *code_remarks, *summarise_remarks, *key_remarks),
        real=True,
    )


def _fitted(path: Path, name: str, options: FitOptions) -> tuple[ClassWorkload, list[tuple[str, str]]]:
    loaded = load_trace(path, {}, name)
    remarks = [(name, f"real trace {path.name}, {loaded.report.rows} requests")]
    remarks += [(name, remark) for remark in loaded.report.remarks()]
    return fit_trace(loaded.traces[0], options), remarks


def _with_keys_of(workload: ClassWorkload, other: ClassWorkload) -> ClassWorkload:
    """The workload with the other's prefix and key shares, at its own rate and prompt lengths."""
    if workload.prompt is None or other.keys is None or other.prefix is None:
        return workload
    longest = float(workload.prompt.p95)
    prefix = replace(other.prefix, tokens=min(other.prefix.tokens, int(workload.prompt.mean)))
    note = f"keys and shared prefix come from another trace, reuse capped at {longest:g} tokens (P95 prompt)"
    return replace(
        workload,
        prefix=prefix,
        keys=_scaled(other.keys, _ratio(workload, other), longest),
        notes=(*workload.notes, note),
    )


def _ratio(workload: ClassWorkload, other: ClassWorkload) -> float:
    return (workload.requests_per_second or 0.0) / (other.requests_per_second or 1.0)


def _scaled(keys: KeyRates, ratio: float, longest: float) -> KeyRates:
    reusable = keys.reusable_tokens
    return replace(
        keys,
        requests_per_second=keys.requests_per_second * ratio,
        error_per_second=keys.error_per_second * ratio,
        reusable_tokens=None if reusable is None else np.minimum(reusable, longest),
    )


def _generated(seed: int, missing: list[str]) -> SampleWorkload:
    options = FitOptions(seed=seed)
    workloads = tuple(fit_trace(generated_trace(made, seed), options) for made in GENERATED)
    absent = ("sample", f"generated, because the data directory lacks {', '.join(missing)}")
    remarks = (absent, *((made.name, made.described()) for made in GENERATED))
    return SampleWorkload(workloads, remarks, real=False)
