"""The commands of a document with the output that stands below each: read, run as printed, written anew.

A fenced block ``console`` holds commands after ``$`` and their output. A comment ``<!-- stage: NAME -->`` above it
names the state that the block starts from. What differs from run to run is masked on both sides: digests, ages,
versions, and what other tests of the same cluster leave behind.
"""

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from e2e.harness.paths import REPOSITORY
from e2e.operator.command_line import PROGRAM, Stage

DOCUMENT = REPOSITORY / "docs" / "cli.md"
NAMESPACE = "serving"
"""Namespace that the document speaks of."""
_BLOCK = re.compile(r"(?:<!-- stage: (?P<stage>\w+) -->\n)?```console\n(?P<text>.*?)```", re.DOTALL)
_MASKS = (
    (re.compile(r"\b[0-9a-f]{10,64}\b"), "DIGEST"),
    (re.compile(r"\b(?:\d+[smhd])+\b"), "AGE"),
    (re.compile(r"\bv1\.\d+\.\d+\b"), "VERSION"),
    (re.compile(r"[ ─]+"), " "),
)
_FOREIGN = re.compile(r"^\w+ +(leader|operator|permissions), .*\n(?: {5}.*\n)?|^\d+ ok, .*\n", re.MULTILINE)
"""Lines of the doctor about whatever operator runs on the cluster."""


@dataclass(frozen=True)
class Block:
    """One block.

    Attributes:
        stage: state it starts from; empty goes on from the block before.
        commands: with their output.
    """

    stage: str
    commands: tuple[tuple[str, str], ...]


def blocks(document: Path = DOCUMENT) -> Iterator[Block]:
    """Every block of a document."""
    for found in _BLOCK.finditer(document.read_text(encoding="utf-8")):
        parts = re.split(r"^\$ (.*)\n", found["text"], flags=re.MULTILINE)[1:]
        yield Block(found["stage"] or "", tuple(zip(parts[::2], parts[1::2], strict=True)))


def run(stage: Stage, command: str, directory: Path) -> str:
    """What a shell prints for a command; the namespace comes from the kubeconfig's context."""
    config = yaml.safe_load(stage.cluster.kubeconfig.read_text())
    config["contexts"][0]["context"]["namespace"] = stage.namespace
    file = directory / "config"
    file.write_text(yaml.safe_dump(config))
    environment = stage.kvplan.environment | {"KUBECONFIG": str(file)}
    environment["PATH"] = f"{PROGRAM.parent}:{environment['PATH']}"
    return shell(command, environment, directory)


def shell(command: str, environment: Mapping[str, str], directory: Path) -> str:
    """What a shell prints for a command, on a terminal of 110 columns without colours; standard output first."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=directory,
        env={**environment, "COLUMNS": "110", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    return "".join(f"{line.rstrip()}\n" for line in (done.stdout + done.stderr).splitlines())


def masked(output: str) -> str:
    """An output without what differs from run to run."""
    text = _FOREIGN.sub("", output)
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return text.strip()


def rewritten(outputs: Iterable[str], document: Path = DOCUMENT) -> str:
    """A document with other outputs, in the order of the commands."""
    following = iter(outputs)

    def fresh(found: "re.Match[str]") -> str:
        commands = re.findall(r"^\$ (.*)\n", found["text"], flags=re.MULTILINE)
        head = found[0].partition("```console\n")[0]
        return head + "```console\n" + "".join(f"$ {c}\n{next(following)}" for c in commands) + "```"

    return _BLOCK.sub(fresh, document.read_text(encoding="utf-8"))
