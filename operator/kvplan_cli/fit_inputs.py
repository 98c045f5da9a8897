"""What ``kvplan fit`` was asked to read, parsed and loaded: the edge between option texts and workloads.

Inputs: option values as typed. Output: fitted ``ClassWorkload`` values and the remarks of the readers.
It reads the named files and writes nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from kvplan_cli.traces import TraceError, load_trace
from kvplan_cli.traces.histograms import read_histogram
from kvplan_cli.traces.mapping import parse_pairs
from kvplan_cli.traces.quantile_tables import read_quantiles
from kvplan_operator.model.fitting import FitOptions, fit_distribution, fit_trace
from kvplan_operator.model.trace import RequestTrace
from kvplan_operator.model.workload import ClassWorkload, Published

Number = TypeVar("Number", int, float)
Remark = tuple[str, str]
"""(class or file, sentence)."""


@dataclass(frozen=True)
class FitInputs:
    """Everything a fit reads.

    Attributes:
        traces: (class, file); an empty class means that the mapping names a class column.
        quantiles: (class, file or file#entry).
        histograms: (class, file).
        columns: column spec per class; the empty class holds the spec for all.
        rates: stated requests per second per class.
        max_outputs: stated Lmax per class, tokens.
    """

    traces: Sequence[tuple[str, str]] = ()
    quantiles: Sequence[tuple[str, str]] = ()
    histograms: Sequence[tuple[str, str]] = ()
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    max_outputs: Mapping[str, int] = field(default_factory=dict)


def split_sources(option: str, texts: Sequence[str], *, class_needed: bool = True) -> list[tuple[str, str]]:
    """``CLASS=FILE`` texts as pairs; without ``=`` the class is empty where that is allowed."""
    pairs = []
    for text in texts:
        name, found, file = text.partition("=")
        if (class_needed and not found) or (found and not (name and file)):
            raise TraceError(option, f"{text!r} is not CLASS=FILE", f"write it like {option} chat=chat.csv")
        pairs.append((name, file) if found else ("", text))
    return pairs


def split_columns(texts: Sequence[str]) -> dict[str, dict[str, str]]:
    """``[CLASS:]key=column,…`` texts as specs per class; the empty class is for all."""
    specs: dict[str, dict[str, str]] = {}
    for text in texts:
        head = text.partition("=")[0]
        name, _, rest = text.partition(":") if ":" in head else ("", "", text)
        specs[name] = {**specs.get(name, {}), **parse_pairs(rest)}
    return specs


def split_numbers(option: str, texts: Sequence[str], convert: Callable[[str], Number]) -> dict[str, Number]:
    """``CLASS=NUMBER`` texts as numbers per class."""
    numbers: dict[str, Number] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            numbers[name] = convert(number)
        except ValueError:
            name = ""
        if not name:
            raise TraceError(option, f"{text!r} is not CLASS=NUMBER", f"write it like {option} chat=5")
    return numbers


def fit_all(inputs: FitInputs, options: FitOptions) -> tuple[list[ClassWorkload], list[Remark]]:
    """Read and fit everything asked for.

    Raises:
        TraceError: nothing to read, a file that cannot be used, a class twice, or a number for no class.
        InvalidInput: an option that no fit can use.
    """
    remarks: list[Remark] = []
    workloads = [
        fit_trace(trace, _for_class(options, inputs, trace.name))
        for name, file in inputs.traces
        for trace in _load(inputs, name, Path(file), remarks)
    ]
    for sources, read in ((inputs.quantiles, read_quantiles), (inputs.histograms, _histogram)):
        workloads += [_fit_published(name, read(file), inputs, options) for name, file in sources]
    _check_classes([workload.name for workload in workloads], inputs)
    return workloads, remarks


def _histogram(file: str) -> Published:
    return read_histogram(Path(file))


def _load(inputs: FitInputs, name: str, path: Path, remarks: list[Remark]) -> tuple[RequestTrace, ...]:
    spec = {**inputs.columns.get("", {}), **(inputs.columns.get(name, {}) if name else {})}
    loaded = load_trace(path, spec, name)
    subject = name or path.name
    remarks.append((subject, f"{path.name}: {loaded.report.rows} rows, {loaded.report.mapping.described()}"))
    remarks.extend((subject, remark) for remark in loaded.report.remarks())
    return loaded.traces


def _for_class(options: FitOptions, inputs: FitInputs, name: str) -> FitOptions:
    return replace(options, requests_per_second=inputs.rates.get(name), max_output_tokens=inputs.max_outputs.get(name))


def _fit_published(name: str, found: Published, inputs: FitInputs, options: FitOptions) -> ClassWorkload:
    return fit_distribution(name, found, _for_class(options, inputs, name))


def _check_classes(names: Sequence[str], inputs: FitInputs) -> None:
    if not names:
        raise TraceError("fit", "nothing to read", "give at least one --trace CLASS=FILE")
    for name in names:
        if names.count(name) > 1:
            raise TraceError("fit", f"class {name!r} is given twice", "join the files or rename one class")
    stated = {*inputs.rates, *inputs.max_outputs, *inputs.columns} - {"", *names}
    for name in sorted(stated):
        raise TraceError("fit", f"no class {name!r} was read", f"use one of {', '.join(sorted(names))}")
