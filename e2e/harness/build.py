"""Build the control plane once into the content-keyed cache: `python -m e2e.harness.build [COMPONENT...]`.

Inputs: the recipes, a Go toolchain, the module proxy that Go is configured to use. Outputs: binaries, and how long each
took. A binary appears under its name only when it is whole; two builders at once wait for each other; a builder that is
killed takes its compilers along.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from e2e.harness import recipes
from e2e.harness.errors import BuildFailed
from e2e.harness.locking import exclusive
from e2e.harness.paths import cache
from e2e.harness.process import Command, tethered
from e2e.harness.recipes import GO_ENVIRONMENT, Recipe
from e2e.harness.toolchain import go_command

_COSTS_FILE = "build-costs.json"


@dataclass(frozen=True)
class Cost:
    """What one build took, in seconds: by the wall clock, and of all processors (all that counts on a busy machine)."""

    seconds: float
    processor_seconds: float

    def __str__(self) -> str:
        return f"{self.seconds} s, {self.processor_seconds} processor seconds"


def ensure(recipe: Recipe, *binaries: str) -> Path:
    """Return the directory with these binaries of the recipe, by default all, after building those that are missing.

    Raises:
        BuildFailed: when one does not build.
    """
    wanted = binaries or tuple(recipe.packages)
    if _missing(recipe, wanted):
        with exclusive(cache() / f"{recipe.name}.lock"):
            _build_missing(recipe, wanted)
    return recipe.directory


def module_directory(recipe: Recipe) -> Path:
    """Return where Go keeps the sources of the component, with the manifests that come with it.

    Raises:
        BuildFailed: when the module cannot be had.
    """
    argv = [str(go_command()), "mod", "download", "-C", str(recipe.module), "-json", recipe.version_of]
    done = subprocess.run(argv, env={**os.environ, **GO_ENVIRONMENT}, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise BuildFailed(f"{recipe.version_of} {recipe.version} is not to be had: {done.stdout}{done.stderr}")
    return Path(json.loads(done.stdout)["Dir"])


def build_costs(recipe: Recipe) -> dict[str, Cost]:
    """Return what the build of each cached binary took."""
    file = recipe.directory.parent / _COSTS_FILE
    recorded = json.loads(file.read_text()) if file.exists() else {}
    return {binary: Cost(**cost) for binary, cost in recorded.items()}


def _missing(recipe: Recipe, wanted: Sequence[str]) -> list[str]:
    return [binary for binary in wanted if not (recipe.directory / binary).exists()]


def _build_missing(recipe: Recipe, wanted: Sequence[str]) -> None:
    recipe.directory.mkdir(parents=True, exist_ok=True)
    go = go_command()
    for binary in _missing(recipe, wanted):
        print(f"building {binary} {recipe.version} ...", flush=True)
        before = os.times()
        _build(go, recipe, binary)
        cost = _cost(before, os.times())
        _record(recipe, binary, cost)
        print(f"built {binary} {recipe.version} in {cost}", flush=True)


def _build(go: Path, recipe: Recipe, binary: str) -> None:
    unfinished = recipe.directory / f".{binary}.unfinished"
    target = ["-ldflags", recipe.linker_flags, "-o", str(unfinished), recipe.packages[binary]]
    argv = [str(go), "build", "-C", str(recipe.module), *recipe.flags, *target]
    done = subprocess.run(tethered(Command(binary, argv)), env={**os.environ, **GO_ENVIRONMENT}, check=False)
    if done.returncode != 0:
        raise BuildFailed(f"{binary} {recipe.version} did not build: go build ended with {done.returncode} (see above)")
    unfinished.replace(recipe.directory / binary)


def _cost(before: os.times_result, after: os.times_result) -> Cost:
    """The compilers are descendants that were waited for, so their processor time counts as that of children."""
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return Cost(round(after.elapsed - before.elapsed, 1), round(processor, 1))


def _record(recipe: Recipe, binary: str, cost: Cost) -> None:
    costs = {**build_costs(recipe), binary: cost}
    file = recipe.directory.parent / _COSTS_FILE
    file.write_text(json.dumps({name: asdict(each) for name, each in costs.items()}, indent=2) + "\n")


def main(names: Sequence[str]) -> int:
    """Build the named components, by default those of the control plane, and print where they are."""
    known = {recipe.name: recipe for recipe in recipes.ALL}
    unknown = sorted(set(names) - set(known))
    if unknown:
        print(f"unknown component {', '.join(unknown)}: choose from {', '.join(known)}", file=sys.stderr)
        return 2
    chosen = [known[name] for name in names] or list(recipes.CONTROL_PLANE)
    try:
        for recipe in chosen:
            directory = ensure(recipe)
            print(f"{recipe.name} {recipe.version}: {directory}", flush=True)
            for binary, cost in build_costs(recipe).items():
                print(f"  {binary}: built in {cost}", flush=True)
    except BuildFailed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
