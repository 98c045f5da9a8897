"""What a command is given to read: files, directories and stdin, as ``kubectl apply -f`` takes them.

Inputs: paths. Output: ``Manifests`` of the API types, Nodes, Pods and ConfigMaps. Directories are read like
kubectl's: their YAML and JSON files, by name, not the folders below. Reads files, writes none; a problem is
told by file and document.
"""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from kvplan_cli.errors import CommandError, reason_of
from kvplan_cli.yaml_reader import read_yaml
from kvplan_operator.api.fleet import ServingFleet
from kvplan_operator.api.manifests import Manifests, load_manifests
from kvplan_operator.api.routing_plan import RoutingPlan
from kvplan_operator.errors import ManifestError, Problem

STDIN = "-"
SUFFIXES = (".yaml", ".yml", ".json")
LARGEST_FILE = 64 * 2**20
_DOCUMENT = re.compile(r"\bdocument (\d+)")

FilesOption = Annotated[
    list[str],
    typer.Option(
        "--filename", "-f",
        help="File or directory of manifests, - for stdin: ServingFleet, RequestClasses, Nodes, Pods, "
        "ConfigMaps; kubectl's Lists too. Repeatable.",
    ),
]  # fmt: skip

OptionalFilesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--filename", "-f",
        help="File or directory of manifests, - for stdin: ServingFleet, RequestClasses, Nodes, Pods, "
        "ConfigMaps; kubectl's Lists too. Repeatable. Absent: the cluster is read.",
    ),
]  # fmt: skip


def read_manifests(paths: Sequence[str]) -> Manifests:
    """Everything the paths hold.

    Raises:
        CommandError: a path that cannot be read or holds nothing.
        ManifestError: objects the API refuses, each named by file, document and field.
    """
    places: list[str] = []
    documents: list[Any] = []
    for source, text in _texts(paths):
        found = read_yaml(text, source)
        if all(document is None for document in found):
            raise CommandError(source, "it holds no object", "give a file with manifests")
        places += [f"{source}, document {number}" for number in range(1, len(found) + 1)]
        documents += found
    try:
        return load_manifests(documents)
    except ManifestError as error:
        raise ManifestError([_located(problem, places) for problem in error.problems]) from None


def the_fleet(manifests: Manifests, name: str = "") -> ServingFleet:
    """The one fleet, or the named one.

    Raises:
        CommandError: there is none, or there are several and none is named.
    """
    names = [fleet.metadata.name for fleet in manifests.fleets]
    found = [fleet for fleet in manifests.fleets if not name or fleet.metadata.name == name]
    if not names:
        raise CommandError("input", "no ServingFleet among the files", "give its manifest with -f")
    if not found:
        raise CommandError("--fleet", f"no ServingFleet {name!r} among the files", f"use one of {', '.join(names)}")
    if len(found) > 1:
        raise CommandError("input", f"{len(found)} ServingFleets ({', '.join(names)})", "choose one with --fleet")
    return found[0]


def read_plan(path: str) -> RoutingPlan:
    """The one RoutingPlan of a file.

    Raises:
        CommandError: the file cannot be read, or holds no plan or several.
        ManifestError: the plan is not valid.
    """
    plans = read_manifests([path]).plans
    if len(plans) != 1:
        raise CommandError(path, f"it holds {len(plans)} RoutingPlans", "give a file with exactly one")
    return plans[0]


def _texts(paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(source, text) of every file, directories opened."""
    if not paths:
        raise CommandError("-f", "nothing to read", "give a file, a directory, or - for stdin")
    for path in paths:
        if not path:
            raise CommandError("-f", "an empty path", "name a file, a directory, or - for stdin")
        if path == STDIN:
            yield "stdin", _decoded("stdin", sys.stdin.buffer.read)
        elif Path(path).is_dir():
            yield from ((str(file), _decoded(str(file), file.read_bytes)) for file in _members(Path(path)))
        else:
            yield path, _decoded(path, _reader(Path(path)))


def _members(directory: Path) -> list[Path]:
    found = sorted(file for file in directory.iterdir() if file.suffix in SUFFIXES and file.is_file())
    if not found:
        raise CommandError(directory, "no .yaml, .yml or .json file in it", "give another directory")
    return found


def _reader(path: Path) -> Callable[[], bytes]:
    def read() -> bytes:
        with path.open("rb") as handle:
            return handle.read(LARGEST_FILE + 1)

    return read


def _decoded(source: str, read: Callable[[], bytes]) -> str:
    try:
        data = read()
    except OSError as error:
        raise CommandError(source, f"it cannot be read ({reason_of(error)})", "check the path") from error
    if len(data) > LARGEST_FILE:
        raise CommandError(source, f"it is larger than {LARGEST_FILE >> 20} MiB", "give manifests only")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CommandError(source, f"byte {error.start} is not UTF-8 text", "give YAML or JSON") from error


def _located(problem: Problem, places: Sequence[str]) -> Problem:
    """The problem with ``document 7`` told as the file and the document in it."""

    def place(found: re.Match[str]) -> str:
        return places[int(found.group(1)) - 1]

    return replace(problem, subject=_DOCUMENT.sub(place, problem.subject), remedy=_DOCUMENT.sub(place, problem.remedy))
