"""The command line of an engine's container: read it as vLLM does, and set kvplan's flags in it.

Inputs: ``command`` and ``args`` as they stand, the flags wanted, the names kvplan owns. Output: both lists with only
kvplan's flags changed, everything else in the user's order; doing it twice changes nothing. Takes ``--a b``, ``--a=b``,
underscores for hyphens, vLLM's short forms, repeated flags (the last one counts for vLLM; one is left) and JSON values.
Must not guess: a command hidden in a shell, or one that is not vLLM, is refused (``UnsupportedCommand``). Pure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from kvplan_operator.act.refusals import refused
from kvplan_operator.api.conditions import ConditionReason

SHELLS = frozenset({"sh", "bash", "ash", "dash", "zsh", "ksh", "busybox"})
LAUNCHERS = frozenset({"tini", "dumb-init", "--", "exec", "env", "nice", "-g", "-s"})
"""What may stand before the engine without changing how its flags are read."""
SHORT_FORMS: Mapping[str, str] = {
    "-tp": "tensor-parallel-size",
    "-pp": "pipeline-parallel-size",
    "-n": "nnodes",
    "-r": "node-rank",
}
"""vLLM's short names of flags that kvplan owns; others are the user's and stay as they are."""
SWITCHES = frozenset({"enable-force-include-usage", "headless"})
"""Flags of kvplan without a value."""


@dataclass(frozen=True)
class CommandLine:
    """A container's command and args; an empty list leaves that part to the image.

    Attributes:
        command: replaces the image's entry point.
        args: follow it.
    """

    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """Everything in order."""
        return self.command + self.args


@dataclass(frozen=True)
class _Piece:
    """A flag with its value, or one other word.

    Attributes:
        words: as they stand.
        name: of the flag with hyphens and without leading ones; empty for other words.
        in_command: whether it begins in ``command``.
    """

    words: tuple[str, ...]
    name: str
    in_command: bool


def with_flags(line: CommandLine, flags: Mapping[str, str], owned: Iterable[str], subject: str) -> CommandLine:
    """The command line with kvplan's flags as wanted.

    Args:
        line: as it stands.
        flags: value by name without leading hyphens; empty for a switch.
        owned: names that are removed where ``flags`` lacks them.
        subject: the object and container, for messages.

    Raises:
        RolloutRefused: the flags are hidden in a shell, or the command is not vLLM's.
    """
    check_command(line, subject)
    ours, written = set(flags) | set(owned), set()
    kept: list[_Piece] = []
    for piece in _pieces(line, ours):
        if piece.name not in ours:
            kept.append(piece)
        elif piece.name in flags and piece.name not in written:
            written.add(piece.name)
            kept.append(_Piece(_written(piece, flags[piece.name]), piece.name, piece.in_command))
    added = [word for name in sorted(set(flags) - written) for word in _spelled(name, flags[name])]
    return CommandLine(
        command=tuple(word for piece in kept if piece.in_command for word in piece.words),
        args=(*(word for piece in kept if not piece.in_command for word in piece.words), *added),
    )


def check_command(line: CommandLine, subject: str) -> None:
    """Refuse a command whose flags cannot be read.

    Raises:
        RolloutRefused: with the remedy.
    """
    program = [word for word in line.words if word not in LAUNCHERS and not _is_assignment(word)][:1]
    name = PurePosixPath(program[0]).name if program else ""
    if name in SHELLS:
        raise refused(
            ConditionReason.UNSUPPORTED_COMMAND,
            f"{subject}: command is {list(line.words[:2])}: a shell hides the engine's flags; write command "
            '["vllm", "serve"] and the flags as a list in args',
        )
    if line.command and not _is_engine(name, line.words):
        raise refused(
            ConditionReason.UNSUPPORTED_COMMAND,
            f"{subject}: command is {list(line.command)}: kvplan can read `vllm serve` and `python -m vllm…`; "
            'write command ["vllm", "serve"], or leave it out if the image starts vLLM',
        )


def _is_engine(name: str, words: Sequence[str]) -> bool:
    python = name.startswith("python") and any(word.split(".")[0] == "vllm" for word in words)
    return name == "vllm" or python


def _is_assignment(word: str) -> bool:
    return "=" in word and not word.startswith("-") and word.partition("=")[0].isupper()


def _pieces(line: CommandLine, ours: set[str]) -> Iterator[_Piece]:
    """The words, each of kvplan's flags together with its value."""
    words, position = line.words, 0
    while position < len(words):
        name, joined = _named(words[position])
        length = 1
        if name in ours and not joined and name not in SWITCHES and position + 1 < len(words):
            length = 1 if words[position + 1].startswith("--") else 2
        yield _Piece(words[position : position + length], name, position < len(line.command))
        position += length


def _named(word: str) -> tuple[str, bool]:
    """A flag's name and whether the word holds its value too; no name for other words."""
    head, joined, _ = word.partition("=")
    if head in SHORT_FORMS:
        return SHORT_FORMS[head], bool(joined)
    if not head.startswith("--"):
        return "", False
    name = head[2:].replace("_", "-")
    negated = name.removeprefix("no-")
    return (negated if negated in SWITCHES else name), bool(joined)


def _written(piece: _Piece, value: str) -> tuple[str, ...]:
    """The piece with another value, in the spelling that the user chose; as it is where nothing changes."""
    if piece.name in SWITCHES:
        return (f"--{piece.name}",)
    head, joined, _ = piece.words[0].partition("=")
    return (f"{head}={value}",) if joined else (head, value)


def _spelled(name: str, value: str) -> tuple[str, ...]:
    return (f"--{name}",) if name in SWITCHES else (f"--{name}={value}",)
