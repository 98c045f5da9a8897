"""How every command speaks: a table for people, YAML or JSON for programs, notes on stderr.

Inputs: a ``View``. Output: text on stdout. Colour only where a terminal shows it and NO_COLOR is unset; a
pipe gets plain text wide enough that no cell is folded. YAML and JSON are rendered here and nowhere else.
"""

import json
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from kvplan_cli.files import yaml_documents
from kvplan_solver.codec import to_plain

PIPE_WIDTH = 240
"""Columns of a table that no terminal bounds."""


class Format(StrEnum):
    """What a report can be shown as."""

    TABLE = "table"
    YAML = "yaml"
    JSON = "json"


OutputOption = Annotated[Format, typer.Option("--output", "-o", help="How to print the result.")]


@dataclass(frozen=True)
class View:
    """One report in both languages.

    Attributes:
        document: plain JSON values, for programs.
        sections: tables and sentences in reading order, for people.
    """

    document: Mapping[str, object]
    sections: Sequence[RenderableType]


def show(view: View, output: Format) -> None:
    """Print a view on stdout; YAML and JSON are UTF-8 whatever the locale, for programs read them."""
    if output is Format.TABLE:
        console = make_console(sys.stdout)
        for section in view.sections:
            console.print(section)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(rendered(view.document, output).encode("utf-8", "replace"))


def rendered(document: Mapping[str, object], output: Format) -> str:
    """A document as YAML (also for ``TABLE``, which has no text of its own) or JSON, keys as given."""
    plain = to_plain(document)  # infinities have no spelling in JSON
    if output is Format.JSON:
        return json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return yaml_documents([plain])


def note(text: str) -> None:
    """One line about what was done, on stderr, so that stdout stays the result alone."""
    sys.stderr.write(f"{text}\n")


def make_console(stream: object) -> Console:
    """A console on a stream that never folds what a pipe reads."""
    terminal = hasattr(stream, "isatty") and stream.isatty()
    width = None if terminal or "COLUMNS" in os.environ else PIPE_WIDTH
    return _Console(file=stream, highlight=False, width=width)  # type: ignore[arg-type]


class _Console(Console):
    """A console that leaves a closed pipe to the program, whose exit code says that nothing is wrong."""

    def on_broken_pipe(self) -> None:
        """Raise what is being handled: the pipe is closed."""
        raise BrokenPipeError


def table(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table whose columns of numbers are flush right; absent values show as a dash."""
    cells = [[cell(value) for value in row] for row in rows]
    shown = Table(title=Text(title, style="bold"), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for position, heading in enumerate(headings):
        numeric = position > 0 and all(_is_numeric(row[position]) for row in cells)
        shown.add_column(Text(heading), justify="right" if numeric else "left")
    for row in cells:
        shown.add_row(*map(Text, row))
    return shown


def sentence(text: str, style: str = "") -> Text:
    """Plain words, never read as markup."""
    return Text(text, style=style)


def bullets(title: str, lines: Iterable[str]) -> list[RenderableType]:
    """A heading and its lines; nothing where there are no lines."""
    found = [Text(f"  {line}") for line in lines]
    return [Text(title, style="bold"), *found, Text()] if found else []


def cell(value: object) -> str:
    """A value as one cell."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def number(value: float, digits: int = 4) -> str:
    """A number with four significant digits and thousands separators."""
    if not math.isfinite(value):
        return "–"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def percent(share: float, decimals: int = 1) -> str:
    """A share as a percentage."""
    return "–" if not math.isfinite(share) else f"{share * 100:.{decimals}f} %"


def signed(value: float) -> str:
    """A difference with its sign; a plain 0 where there is none."""
    return "0" if value == 0 else f"{'+' if value > 0 else '−'}{number(abs(value))}"


def _is_numeric(text: str) -> bool:
    return text == "–" or text.lstrip("+−-≤≥<>×").replace(",", "")[:1].isdigit()
