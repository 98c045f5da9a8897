"""Paths on the command line: an empty one is refused, and what is to be written is checked before the work.

Inputs: option values. Output: paths, or a ``CommandError`` that names the option. It writes nothing: that a target
looks writable saves a long search for nothing, and is no promise.
"""

import os
from pathlib import Path

import typer

from kvplan_cli.errors import CommandError


def given_path(value: str | Path) -> Path:
    """A path as typed; an empty one, as an unset variable leaves it, is refused and not taken for ``.``."""
    if not str(value):
        raise typer.BadParameter("it is empty: name a path, or leave the option out")
    return Path(value)


def check_file_target(option: str, path: Path | None) -> None:
    """Refuse a file that cannot be written.

    Raises:
        CommandError: it is a directory, or its directory cannot be made or written.
    """
    if path is None:
        return
    if path.is_dir():
        raise CommandError(option, f"{path} is a directory", "give a file in it")
    check_directory_target(option, path.parent)


def check_directory_target(option: str, path: Path | None) -> None:
    """Refuse a directory that can neither be written nor made.

    Raises:
        CommandError: it, or what it would be made in, is no directory or not writable.
    """
    if path is None:
        return
    present = next(place for place in (path, *path.absolute().parents) if os.path.lexists(place))
    if not present.is_dir():
        raise CommandError(option, f"{path} cannot be written ({present} is no directory)", "give another path")
    if not os.access(present, os.W_OK | os.X_OK):
        raise CommandError(option, f"{path} cannot be written ({present}: Permission denied)", "give another path")
