"""What the demo plans: the sample fleet and nodes, and classes and keys fitted from the sample workload.

Inputs: the folder of the sample manifests, a factor for the traffic. Output: files in a directory and the fit's
report. The factor stands for a larger service with the same requests: rates grow, lengths and keys do not change.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kvplan_cli.errors import CommandError, reason_of
from kvplan_cli.files import write_all, yaml_documents
from kvplan_cli.sample_workload import SampleWorkload, sample_workload
from kvplan_operator.model.fit_manifests import ManifestOptions, fit_manifests, keys_csv
from kvplan_operator.model.fit_report import FitReport, fit_report
from kvplan_operator.model.prefixes import KeyRates
from kvplan_operator.model.workload import ClassWorkload

FLEET = "assistants"
SLO_MILLISECONDS = {"chat": 15_000, "code": 4_000, "summarise": 30_000}
"""Stated: no trace tells what was promised."""
DRIFT_SIGMA, DRIFT_SEED = 0.3, 1
_MANIFESTS = ("fleet.yaml", "nodes.yaml")


@dataclass(frozen=True, eq=False)
class DemoInputs:
    """The files that the demo's steps read.

    Attributes:
        directory: where they are.
        sample: the fitted workload, before the factor.
        report: of the fit, with the factor.
    """

    directory: Path
    sample: SampleWorkload
    report: FitReport

    @property
    def manifests(self) -> list[str]:
        """Fleet, nodes and classes."""
        return [str(self.directory / name) for name in (*_MANIFESTS, "classes.yaml")]


def write_inputs(directory: Path, samples: Path, traffic: float) -> DemoInputs:
    """Fit the sample workload and write everything the demo reads.

    Raises:
        CommandError: the sample manifests are not there, or the directory cannot be written.
        TraceError: the real traces are there but damaged.
    """
    texts = {name: _read(samples / name) for name in _MANIFESTS}
    sample = sample_workload()
    workloads = [scaled(workload, traffic) for workload in sample.workloads]
    texts |= {
        "classes.yaml": yaml_documents(fit_manifests(workloads, ManifestOptions(FLEET, "default", SLO_MILLISECONDS))),
        "keys.csv": keys_csv(workloads),
        "keys-drifted.csv": keys_csv(drifted(workloads)),
    }
    try:
        write_all(directory, texts)
    except OSError as error:
        raise CommandError(
            "--out", f"{directory} cannot be written ({reason_of(error)})", "give another directory"
        ) from error
    return DemoInputs(directory, sample, fit_report(workloads, sample.remarks))


def scaled(workload: ClassWorkload, traffic: float) -> ClassWorkload:
    """The class with its rate, and that of its keys, times a factor."""
    rate = workload.requests_per_second
    return replace(
        workload,
        requests_per_second=None if rate is None else rate * traffic,
        keys=_times(workload.keys, np.float64(traffic)),
    )


def drifted(workloads: Sequence[ClassWorkload]) -> list[ClassWorkload]:
    """The classes with every key's rate times a lognormal factor (σ 0.3, a stated seed): popularity has moved."""
    rng = np.random.default_rng(DRIFT_SEED)
    return [
        replace(w, keys=_times(w.keys, rng.lognormal(0.0, DRIFT_SIGMA, len(w.keys.names) if w.keys else 0)))
        for w in workloads
    ]


def _times(
    keys: KeyRates | None, factor: "np.ndarray[tuple[int], np.dtype[np.float64]] | np.float64"
) -> KeyRates | None:
    if keys is None:
        return None
    return replace(
        keys,
        requests_per_second=keys.requests_per_second * factor,
        error_per_second=keys.error_per_second * factor,
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(
            path,
            f"it cannot be read ({reason_of(error)})",
            "run in a checkout, or name its manifests/samples with --samples",
        ) from error
