"""The command line of a module that writes generated files or checks them: ``[--check] PATH``.

Input: what is generated, arguments. Output: an exit code; words go to the standard streams.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Generated:
    """What is generated from the code.

    Attributes:
        name: of the module, before its messages.
        place: what the path is, for the usage and for messages: FILE or DIRECTORY.
        write: writes it below a path, and names what it wrote.
        differing: a sentence for each file below a path that is not as generated.
    """

    name: str
    place: str
    write: Callable[[Path], Iterable[Path]]
    differing: Callable[[Path], Iterable[str]]

    @property
    def usage(self) -> str:
        """One line."""
        return f"usage: python -m kvplan_cli.{self.name} [--check] {self.place}"

    def run(self, arguments: list[str]) -> int:
        """0 written or as generated, 1 a checked file differs, 2 bad usage or an unusable path."""
        checking = arguments[:1] == ["--check"]
        paths = arguments[1:] if checking else arguments
        if len(paths) != 1 or paths[0].startswith("-"):
            sys.stderr.write(f"{self.usage}\n")
            return 2
        try:
            return self._check(Path(paths[0])) if checking else self._write(Path(paths[0]))
        except OSError as error:
            wanted = f"give a {self.place.lower()} that can be {'read' if checking else 'written'}"
            sys.stderr.write(f"{self.name}: {paths[0]}: {error.strerror}: {wanted}\n")
            return 2

    def _check(self, path: Path) -> int:
        lines = list(self.differing(path))
        sys.stderr.writelines(f"{self.name}: {line}\n" for line in lines)
        return 1 if lines else 0

    def _write(self, path: Path) -> int:
        sys.stdout.writelines(f"{written}\n" for written in self.write(path))
        return 0


@dataclass(frozen=True)
class Pages:
    """A directory of generated files.

    Attributes:
        pattern: of all files that belong there.
        texts: file name to text.
        differs: what is wrong with a file that is not as generated.
        stranger: what is wrong with a file that nothing generates.
        remedy: what to do about the first, and about a missing one.
    """

    pattern: str
    texts: Callable[[], Mapping[str, str]]
    differs: str
    stranger: str
    remedy: str

    def write(self, directory: Path) -> list[Path]:
        """Write every file into ``directory``, which is made if missing; returns their paths."""
        directory.mkdir(parents=True, exist_ok=True)
        return [replace_file(directory / name, text) for name, text in self.texts().items()]

    def differing(self, directory: Path) -> list[str]:
        """One line per file that is missing, not the generated one, or a stranger; empty where all are as generated."""
        wanted = {directory / name: text for name, text in self.texts().items()}
        strangers = sorted(set(directory.glob(self.pattern)) - set(wanted))
        return [line for path, text in wanted.items() for line in difference(path, text, self.differs, self.remedy)] + [
            f"{path}: {self.stranger}: remove it" for path in strangers
        ]


def difference(path: Path, text: str, differs: str, remedy: str) -> list[str]:
    """What is wrong with a file that should have this text, a sentence; empty where it has."""
    if not path.is_file():
        return [f"{path}: it is missing: {remedy}"]
    return [] if path.read_bytes() == text.encode() else [f"{path}: {differs}: {remedy}"]


def replace_file(path: Path, text: str) -> Path:
    """Write a file as a whole, so that an interrupted run leaves no half-written one."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text, encoding="utf-8")
    return fresh.replace(path)
