"""``kvplan fit``: request traces in, workload figures and ready-made manifests out.

Inputs: trace files, published quantiles and histograms. Outputs: a report, and with ``--out`` the files
``requestclasses.yaml``, ``keys.csv`` and ``report/fit.json``, which lies in a folder of its own because ``-f`` and
``kubectl apply -f`` take every JSON file beside the manifests for one. Bad input raises ``TraceError``,
``InvalidInput`` or ``CommandError``, which the program turns into exit code 2; nothing has been written then.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from kvplan_cli.errors import CommandError, reason_of
from kvplan_cli.files import write_all, yaml_documents
from kvplan_cli.fit_inputs import FitInputs, fit_all, split_columns, split_numbers, split_sources
from kvplan_cli.fit_view import fit_view
from kvplan_cli.output import Format, OutputOption, rendered, show
from kvplan_cli.planning import LARGEST_SEED
from kvplan_cli.targets import check_directory_target, given_path
from kvplan_cli.traces.mapping import read_spec
from kvplan_operator.model.fit_manifests import ManifestOptions, fit_manifests, keys_csv
from kvplan_operator.model.fit_report import FitReport, fit_report
from kvplan_operator.model.fitting import FitOptions
from kvplan_operator.model.lengths import MAX_POINTS
from kvplan_operator.model.prefixes import SHARED_BY
from kvplan_operator.model.workload import ClassWorkload

Texts = list[str] | None
_HEAD = (
    "# Fitted by `kvplan fit`. No trace tells what latency was promised (spec.slo) or how requests are told\n"
    "# apart (spec.match): check both, and give the classes the labels that your fleet selects.\n"
)


def fit(
    trace: Annotated[
        Texts,
        typer.Option(
            help="CLASS=FILE of requests (csv, tsv, jsonl, parquet; also .gz). Repeatable. "
            "Required, unless --quantiles or --histogram is given."
        ),
    ] = None,
    quantiles: Annotated[Texts, typer.Option(help="CLASS=FILE[#ENTRY] of published quantiles.")] = None,
    histogram: Annotated[Texts, typer.Option(help="CLASS=FILE with le,count or upper,count.")] = None,
    columns: Annotated[
        Texts,
        typer.Option(
            help="[CLASS:]key=column,… with arrival, arrivalUnit, prompt, output, class, "
            "key, blocks, blockTokens. These names, and those of well-known traces, are detected."
        ),
    ] = None,
    columns_file: Annotated[
        Path | None,
        typer.Option(parser=given_path, metavar="PATH", help="YAML file of key: column lines for all traces."),
    ] = None,
    rate: Annotated[Texts, typer.Option(help="CLASS=REQUESTS_PER_SECOND, stated instead of measured.")] = None,
    slo: Annotated[Texts, typer.Option(help="CLASS=MILLISECONDS, target of the mean latency.")] = None,
    max_output: Annotated[Texts, typer.Option(help="CLASS=TOKENS, the longest output allowed.")] = None,
    windows: Annotated[int, typer.Option(help="Time windows for drift and burstiness.")] = 8,
    shared_by: Annotated[float, typer.Option(help="Share of requests that makes a prefix shared.")] = SHARED_BY,
    key_blocks: Annotated[
        int | None,
        typer.Option(help="Leading blocks that make a key; one more than the shared prefix if absent."),
    ] = None,
    max_points: Annotated[int, typer.Option(help="Output-length samples kept per class.")] = MAX_POINTS,
    seed: Annotated[int, typer.Option(max=LARGEST_SEED, help="Seed of the bootstrap.")] = 0,
    fleet: Annotated[
        str, typer.Option(help="Name of the fleet that the classes are for: their label. Absent: no label.")
    ] = "",
    namespace: Annotated[str, typer.Option(help="Namespace of the documents.")] = "default",
    out: Annotated[
        Path | None,
        typer.Option(parser=given_path, metavar="PATH", help="Directory for manifests, key rates and the report."),
    ] = None,
    output: OutputOption = Format.TABLE,
) -> None:
    """Fit lengths, rates, burstiness, drift and the suggested radius ε from request traces."""
    check_directory_target("--out", out)
    common = {"": read_spec(columns_file)} if columns_file else {}
    inputs = FitInputs(
        traces=split_sources("--trace", trace or [], class_needed=False),
        quantiles=split_sources("--quantiles", quantiles or []),
        histograms=split_sources("--histogram", histogram or []),
        columns=common | split_columns(columns or []),
        rates=split_numbers("--rate", rate or [], float),
        max_outputs=split_numbers("--max-output", max_output or [], int),
    )
    options = FitOptions(windows=windows, seed=seed, max_points=max_points, shared_by=shared_by, key_blocks=key_blocks)
    workloads, remarks = fit_all(inputs, options)
    manifests = ManifestOptions(fleet, namespace, split_numbers("--slo", slo or [], int))
    report = fit_report(workloads, remarks)
    if out is not None:
        _write(out, _files(workloads, manifests, report))
    show(fit_view(report), output)


def _files(workloads: Sequence[ClassWorkload], manifests: ManifestOptions, report: FitReport) -> dict[str, str]:
    return {
        "requestclasses.yaml": _HEAD + yaml_documents(fit_manifests(workloads, manifests)),
        "keys.csv": keys_csv(workloads),
        "report/fit.json": rendered(report.to_plain(), Format.JSON),
    }


def _write(directory: Path, texts: Mapping[str, str]) -> None:
    try:
        write_all(directory, texts)
    except OSError as error:
        problem = f"{directory} cannot be written ({reason_of(error)})"
        raise CommandError("--out", problem, "give another directory") from error
