"""Published quantiles of output (and prompt) lengths, from CSV or JSON.

Inputs:
- CSV: columns ``out_q0 … out_q1`` with the level in the name, ``in_q0 … in_q1`` for prompts, ``out_mean`` and
  ``in_mean`` if known. Several rows are mixed with equal weights, and the note says so.
- JSON: an object with ``min``, ``pNN``, ``max`` and perhaps ``mean``, or one with ``output`` and ``prompt``
  objects of that form; ``FILE#entry`` picks an entry. ``p999`` means 99.9 %.
Output: ``Published``, with the resolution of the levels as error bound. Nothing is extrapolated: a table
without its maximum is refused.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kvplan_cli.traces.errors import TraceError
from kvplan_cli.traces.numeric_csv import numeric_columns
from kvplan_cli.traces.text import suffix_of, text_lines
from kvplan_operator.model.lengths import MAX_POINTS, LengthSamples, lengths_from_quantiles
from kvplan_operator.model.trace import Floats
from kvplan_operator.model.workload import PromptLengths, Published
from kvplan_solver.errors import InvalidInput

_CSV_COLUMN = re.compile(r"(out|in)_(?:mean|q(?:0|1|0?\.[0-9]+))$")
_PERCENTILE = re.compile(r"p([0-9]{1,6}(?:\.[0-9]+)?)$")
_POINTS_PER_ROW = 200  # of a table of many rows; the fit compacts their mixture again


@dataclass(frozen=True, eq=False)
class _Lengths:
    """One distribution of a table: samples, mean and maximum in tokens."""

    samples: LengthSamples
    mean: float
    maximum: float


def read_quantiles(source: str) -> Published:
    """The distribution behind ``FILE.csv`` or ``FILE.json[#entry]``, each also with ``.gz``.

    Raises:
        TraceError: unreadable, no such entry, or no usable quantile table.
    """
    file, _, entry = source.partition("#")
    path = Path(file)
    try:
        return _from_json(path, entry) if suffix_of(path) == ".json" else _from_csv(path)
    except InvalidInput as error:
        raise TraceError(path, f"{error.field} is {error.value!r}", error.remedy) from error


def _published(output: _Lengths, prompt: _Lengths | None) -> Published:
    known = None if prompt is None else _prompt_lengths(prompt)
    return Published(output.samples, output.mean, int(np.ceil(output.maximum)), known)


def _prompt_lengths(prompt: _Lengths) -> PromptLengths:
    p95 = float(np.quantile(prompt.samples.samples, 0.95, method="inverted_cdf"))
    longest = int(np.ceil(prompt.maximum))
    return PromptLengths(min(prompt.mean, longest), min(int(p95), longest), longest)


def _from_csv(path: Path) -> Published:
    columns = numeric_columns(path, lambda name: _CSV_COLUMN.match(name) is not None)
    output, prompt = _mixture(columns, "out"), _mixture(columns, "in")
    if output is None:
        raise TraceError(path, "no columns out_q0 … out_q1", "name each column by its level, e.g. out_q0.5")
    return _published(output, prompt)


def _mixture(columns: Mapping[str, Floats], prefix: str) -> _Lengths | None:
    """All rows of the table as one distribution, every row with the same weight."""
    start = f"{prefix}_q"
    levels = sorted((float(name[len(start) :]), name) for name in columns if name.startswith(start))
    if not levels:
        return None
    rows = np.stack([columns[name] for _, name in levels], axis=1)
    points = MAX_POINTS if len(rows) == 1 else _POINTS_PER_ROW
    parts = [lengths_from_quantiles([level for level, _ in levels], row.tolist(), points) for row in rows]
    mixed = np.sort(np.concatenate([part.samples for part in parts]))
    rows_note = f", {len(parts)} rows mixed with equal weights" if len(parts) > 1 else ""
    samples = LengthSamples(mixed, _mean_error(parts), parts[0].note + rows_note)
    mean = columns.get(f"{prefix}_mean", mixed)
    return _Lengths(samples, float(mean.mean()), float(rows[:, -1].max()))


def _mean_error(parts: list[LengthSamples]) -> float:
    """W1 is convex: a mixture is no further away than its parts are on average."""
    return float(np.mean([part.error_tokens for part in parts]))


def _from_json(path: Path, entry: str) -> Published:
    table = _entry(path, entry)
    prompt = table.get("prompt")
    return _published(
        _percentiles(path, table.get("output", table)), None if prompt is None else _percentiles(path, prompt)
    )


def _entry(path: Path, entry: str) -> Mapping[str, object]:
    try:
        document = json.loads("".join(text_lines(path)))
    except (ValueError, RecursionError) as error:
        raise TraceError(path, f"no JSON ({error})", "give a JSON object of quantiles") from error
    entries = document if isinstance(document, dict) else {}
    found = entries.get(entry) if entry else document
    if not isinstance(found, dict):
        known = ", ".join(map(str, entries)) or "none"
        raise TraceError(path, f"no object {entry!r}", f"name an entry as FILE#entry; there are {known}")
    return found


def _percentiles(path: Path, table: object) -> _Lengths:
    """One ``{min, pNN, max, mean}`` object."""
    if not isinstance(table, Mapping):
        raise TraceError(path, f"quantiles are {table!r}", 'write an object like {"p50": 8, "max": 5000}')
    known = [(level, name) for name in table if (level := _level(str(name))) is not None]
    if 1.0 not in dict(known):
        named = ", ".join(map(str, table))
        raise TraceError(path, f"no maximum among {named}", 'add "max", nothing is extrapolated')
    tokens = [_tokens(path, table, name) for _, name in sorted(known)]
    samples = lengths_from_quantiles([level for level, _ in sorted(known)], tokens)
    mean = _tokens(path, table, "mean") if "mean" in table else float(samples.samples.mean())
    return _Lengths(samples, mean, tokens[-1])


def _tokens(path: Path, table: Mapping[str, object], name: str) -> float:
    value = table[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TraceError(path, f"{name} is {value!r}", "write tokens as a number")
    return float(value)


def _level(name: str) -> float | None:
    """The level from 0 to 1 that a percentile's name stands for."""
    if name in ("min", "max"):
        return float(name == "max")
    found = _PERCENTILE.match(name)
    if not found:
        return None
    digits = found.group(1)
    percent = float(digits)
    return percent / 100 if percent <= 100 else float(f"0.{digits}")
