"""``kvplan demo-plan``: the planner's main job on real input, step by step, each with the command that does it.

Fit → plan → what-if → explain → verify → table → replan, with pictures; every step is one of the other commands,
called with the arguments it prints. Writes into one directory; needs no cluster and no network.
"""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, cast

import typer

from kvplan_cli.commands.explain import explain
from kvplan_cli.commands.plan import plan
from kvplan_cli.commands.table import table
from kvplan_cli.commands.verify import verify
from kvplan_cli.demo_inputs import DRIFT_SIGMA, DemoInputs, write_inputs
from kvplan_cli.fit_view import fit_view
from kvplan_cli.output import Format, show
from kvplan_cli.targets import check_directory_target, given_path

PATIENCE = 60
"""Seconds: the search ends by its own work on any machine, so that the same input gives the same plan."""
SAMPLES = Path(__file__).resolve().parents[3] / "manifests" / "samples"
TRAFFIC = 16.0
"""Times the traffic of the traces: they are small cut-outs, and the sample fleet has 48 GPUs."""


def demo_plan(
    out: Annotated[
        Path, typer.Option(parser=given_path, metavar="PATH", help="Directory for everything the demo writes.")
    ] = Path("out/demo-plan"),
    samples: Annotated[
        Path, typer.Option(parser=given_path, metavar="PATH", help="Folder of the sample manifests.")
    ] = SAMPLES,
    traffic: Annotated[float, typer.Option(min=0.001, help="Factor on the traffic of the traces.")] = TRAFFIC,
    fewer_gpus: Annotated[int, typer.Option(min=1, help="GPUs that the what-if takes away.")] = 8,
) -> None:
    """Run fit, plan, explain, verify and table on the sample fleet, from real traces where they are."""
    check_directory_target("--out", out)
    made = write_inputs(out, samples, traffic)
    _tell_fit(made, traffic)
    files, less = made.manifests, f"gpus=-{fewer_gpus}"
    plan_file, keys, moved = out / "plan.yaml", out / "keys.csv", out / "keys-drifted.csv"
    _step(
        "2. Plan: which groups run where, what each class reserves, where requests go.",
        "plan", (files, "--time-limit", PATIENCE, "--out", plan_file, "--plot", out),
        lambda: plan(filename=files, time_limit=PATIENCE, out=plan_file, plot=out),
    )  # fmt: skip
    _step(
        f"3. What if there were {fewer_gpus} GPUs less?",
        "plan", (files, "--time-limit", PATIENCE, "--what-if", less),
        lambda: plan(filename=files, time_limit=PATIENCE, what_if=[less]),
    )  # fmt: skip
    _step(
        "4. Why is the plan as it is, and what would change it?",
        "explain", (files, "--time-limit", PATIENCE),
        lambda: explain(filename=files, time_limit=PATIENCE),
    )  # fmt: skip
    _step(
        "5. Does the file hold? Every constraint is checked again, whoever wrote it.",
        "verify", (files, plan_file),
        lambda: verify(files, str(plan_file)),
    )  # fmt: skip
    _step(
        "6. Routing table: which hot prefixes get a fixed home.",
        "table", (files, "--plan", plan_file, "--keys", keys, "--out", out / "table"),
        lambda: table(files, keys, plan=str(plan_file), out=out / "table"),
    )  # fmt: skip
    _step(
        f"7. Replan after the keys' rates drifted (lognormal, σ {DRIFT_SIGMA}): most keys stay where they are.",
        "table", (files, "--plan", plan_file, "--keys", moved, "--before", keys, "--generation", 2, "--plot", out),
        lambda: table(files, moved, plan=str(plan_file), before=keys, generation=2, plot=out),
    )  # fmt: skip
    _say(
        f"Everything is in {out}: plan.yaml, the table, and the pictures (*.png).\n"
        "A cluster that runs the operator takes plan.yaml beside its fleet; kvplan approve accepts it there."
    )


def _tell_fit(made: DemoInputs, traffic: float) -> None:
    source = "real traces" if made.sample.real else "a generated sample (the real traces are not here)"
    _say(
        f"1. Fit: three classes from {source}, with {traffic:g} times their traffic.\n"
        f"   kvplan fit does the same for one trace per class; written to {made.directory / 'classes.yaml'}."
    )
    show(fit_view(made.report), Format.TABLE)


def _step(text: str, command: str, arguments: tuple[object, ...], run: Callable[[], None]) -> None:
    """Tell what comes and the command that does it, then do it; the first argument is the list of manifests."""
    manifests, *options = arguments
    files = [part for path in cast("list[str]", manifests) for part in ("-f", path)]
    _say(f"{text}\n   $ kvplan {command} {shlex.join([*files, *map(str, options)])}")
    run()


def _say(text: str) -> None:
    sys.stdout.write(f"\n{text}\n\n")
    sys.stdout.flush()
