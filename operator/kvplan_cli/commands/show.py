"""``kvplan show``: facts on which the planner and the paper differ, computed live.

``show epsilon`` prints the reservation for a range of radii ε; ``show sticking`` where Algorithm 1 stops from
different starts; ``show headroom`` what κ is for. All work without input, on a stated example. They write nothing.
"""

from typing import Annotated

import typer

from kvplan_cli.headroom import refusals
from kvplan_cli.inputs import read_manifests, the_fleet
from kvplan_cli.output import Format, OutputOption, note, show
from kvplan_cli.problems import class_inputs, problem_of
from kvplan_cli.sample_workload import sample_workload
from kvplan_cli.show_view import epsilon_view, headroom_view, sticking_view
from kvplan_cli.sticking import endings, example_instance
from kvplan_operator.model.workload import ClassWorkload
from kvplan_solver.instance import ClassInput, Instance, clip_samples

show_app = typer.Typer(no_args_is_help=True, help="Show where the planner and the paper differ, computed live.")

Files = Annotated[
    list[str] | None,
    typer.Option("--filename", "-f", help="Manifests to compute it for. Absent: a stated example."),
]
Fleet = Annotated[str, typer.Option(help="Name of the fleet, where the files hold several.")]
Traces = Annotated[list[str] | None, typer.Option(help="CLASS=FILE of requests. Repeatable.")]


@show_app.command()
def epsilon(
    filename: Files = None, fleet: Fleet = "", trace: Traces = None, output: OutputOption = Format.TABLE
) -> None:
    """Print the reservation of each class for a range of radii: under Wasserstein1 a step function."""
    if filename:
        manifests = read_manifests(filename)
        classes = class_inputs(manifests, the_fleet(manifests, fleet), trace or [])
    else:
        classes = _sample_classes()
    show(epsilon_view(classes), output)


@show_app.command()
def sticking(
    filename: Files = None, fleet: Fleet = "", trace: Traces = None, output: OutputOption = Format.TABLE
) -> None:
    """Print where Algorithm 1 as printed stops from different starts, beside the certified plan."""
    instance, source = example_instance(), "stated example: 3 classes, 3 configurations, 16 GPUs"
    if filename:
        instance, source = _given_instance(filename, fleet, trace or []), ", ".join(filename)
    show(sticking_view(instance, endings(instance), source), output)


@show_app.command()
def headroom(output: OutputOption = Format.TABLE) -> None:
    """Print who is refused at the memory load a plan allows, if the ledger kept the headroom free as well."""
    show(headroom_view([refusals(fitting, 4, routers) for fitting in (8, 16, 32) for routers in (1, 2)]), output)


def _given_instance(filename: list[str], fleet: str, traces: list[str]) -> Instance:
    manifests = read_manifests(filename)
    return problem_of(manifests, the_fleet(manifests, fleet), traces).instance


def _sample_classes() -> list[ClassInput]:
    sample = sample_workload()
    note("no input: the sample workload, " + ("real traces" if sample.real else "generated"))
    return [_sample_class(workload) for workload in sample.workloads]


def _sample_class(workload: ClassWorkload) -> ClassInput:
    """The class as far as its order depends on it, at the default costs and radius."""
    samples, _ = clip_samples(workload.output_lengths.samples, workload.max_output_tokens)
    return ClassInput(
        workload.name, workload.requests_per_second or 0.0, 0, 0, 0, 0, workload.max_output_tokens, samples,
        latency_slo_seconds=0.0, radius=0.15 * float(samples.mean()),
    )  # fmt: skip
