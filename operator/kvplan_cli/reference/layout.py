"""Markdown tables. Pure."""

from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are Markdown, and a bar in one is no border."""
    return "".join(map(_line, (heads, ["---"] * len(heads), *rows)))


def code(text: object) -> str:
    """A text as it stands; empty for none."""
    return f"`{text}`" if text not in (None, "") else ""


def plain(text: str) -> str:
    """Prose of a docstring as Markdown."""
    return " ".join(text.split()).replace("``", "`")


def _line(cells: Sequence[str]) -> str:
    return "|" + "".join(f" {_cell(cell)} |" if cell else " |" for cell in cells) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", r"\|")
