"""Figures to PNG files, each of them whole.

Inputs: figures by file name. Output: files in a directory. The bytes carry no date and no version, so that
the same figure gives the same bytes.
"""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from kvplan_cli.errors import CommandError, reason_of
from kvplan_cli.files import write_all

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_figures(directory: Path, figures: "Mapping[str, Figure]", option: str = "--plot") -> list[Path]:
    """Write every figure under its name plus ``.png``.

    Raises:
        CommandError: the directory cannot be written.
    """
    images = {f"{name}.png": _png(figure) for name, figure in figures.items()}
    try:
        return write_all(directory, images)
    except OSError as error:
        raise CommandError(
            option, f"{directory} cannot be written ({reason_of(error)})", "give another directory"
        ) from error


def _png(figure: "Figure") -> bytes:
    image = BytesIO()
    figure.savefig(image, format="png", metadata={"Software": None})
    return image.getvalue()
