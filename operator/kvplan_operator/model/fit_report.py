"""What a fit found, as one row per class: the numbers a person checks before planning with them.

Input: ``ClassWorkload`` values. Output: plain rows, ready for a table, YAML or JSON; numbers are rounded to
four significant digits and absent ones are None. No I/O.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kvplan_operator.model.fitted_limits import limits_note
from kvplan_operator.model.workload import ClassWorkload

QUANTILE_LEVELS = (0.5, 0.9, 0.95, 0.99)
"""Levels shown in the report."""
_DIGITS = 4

Plain = dict[str, object]


@dataclass(frozen=True, eq=False)
class FitReport:
    """The rows of a fit and the notes to read with them.

    Attributes:
        rows: one mapping per class, by class name; see ``_row`` for the fields and their units.
        notes: (class, sentence).
    """

    rows: tuple[Plain, ...]
    notes: tuple[tuple[str, str], ...]

    def to_plain(self) -> Plain:
        """The report as JSON values."""
        notes = [{"class": name, "note": note} for name, note in self.notes]
        return {"classes": list(self.rows), "notes": notes}


def fit_report(workloads: Sequence[ClassWorkload], remarks: Sequence[tuple[str, str]] = ()) -> FitReport:
    """One row per class, and all notes: first the readers' remarks, then those of the fits.

    Args:
        workloads: the fitted classes.
        remarks: (class, sentence) on how the input was read, such as bad rows.
    """
    ordered = sorted(workloads, key=lambda workload: workload.name)
    notes = tuple((workload.name, note) for workload in ordered for note in _notes(workload))
    return FitReport(tuple(_row(workload) for workload in ordered), (*remarks, *notes))


def _notes(workload: ClassWorkload) -> tuple[str, ...]:
    limits = limits_note(workload)
    return (*workload.notes, limits) if limits else workload.notes


def _row(workload: ClassWorkload) -> Plain:
    """Rates per second, lengths and radii in tokens, times in seconds."""
    arrivals, prompt, keys = workload.arrivals, workload.prompt, workload.keys
    return {
        "class": workload.name,
        "samples": workload.sample_count,
        "windowSeconds": rounded(workload.window_seconds),
        "requestsPerSecond": rounded(workload.requests_per_second),
        "arrivalScv": rounded(workload.arrival_scv),
        "arrivalScvOverall": rounded(arrivals.scv) if arrivals else None,
        "windowRates": [rounded(rate) for rate in arrivals.window_rates] if arrivals else [],
        "promptTokens": {"mean": rounded(prompt.mean), "p95": prompt.p95, "max": prompt.maximum} if prompt else {},
        "outputTokens": _output(workload),
        "sharedPrefixTokens": workload.prefix.tokens if workload.prefix else None,
        "keys": len(keys.names) if keys else None,
        "driftTokens": [rounded(distance) for distance in workload.radius.window_distances],
        "radius": _radius(workload),
    }


def _output(workload: ClassWorkload) -> Plain:
    samples = workload.output_lengths.samples
    levels = np.quantile(samples, QUANTILE_LEVELS, method="inverted_cdf").tolist()
    quantiles = {f"p{level * 100:g}": round(value) for level, value in zip(QUANTILE_LEVELS, levels, strict=True)}
    return {"mean": rounded(workload.output_mean), **quantiles, "max": workload.max_output_tokens}


def _radius(workload: ClassWorkload) -> Plain:
    radius = workload.radius
    return {
        "tokens": rounded(radius.tokens),
        "relative": rounded(radius.relative),
        "noiseTokens": rounded(radius.noise_tokens),
        "driftTokens": rounded(radius.drift_tokens),
    }


def rounded(value: float | None) -> float | None:
    """Four significant digits; None stays None."""
    return None if value is None else float(f"{value:.{_DIGITS}g}")
