"""What all figures share: the library, the colours, the size of type.

Colours are those of Okabe and Ito, told apart by every kind of colour vision; what must be told apart in
print as well also differs by hatch, dash or label. matplotlib is an optional extra and is imported on use.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from itertools import cycle, islice
from typing import TYPE_CHECKING, Literal

from kvplan_cli.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

DPI = 110
BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, YELLOW = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442",
)  # fmt: skip
INK, MUTED, GRID, EMPTY = "#222222", "#666666", "#DDDDDD", "#F4F4F4"
_SERIES = (BLUE, ORANGE, GREEN, PURPLE, SKY, YELLOW, VERMILION)
_DARK = (BLUE, GREEN, VERMILION)
_TITLE_SIZE, _KEY_SIZE = 11, 9


def require_matplotlib() -> None:
    """Fail before any work is done for pictures that cannot be drawn.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    if find_spec("matplotlib") is None:
        raise MissingExtra("--plot", "matplotlib", "plots")


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure, inches."""
    from matplotlib.figure import Figure  # noqa: PLC0415  optional extra

    return Figure(figsize=(width, height), dpi=DPI, layout="constrained", facecolor="white")


def colours(names: Sequence[str]) -> dict[str, str]:
    """One colour per name, in the given order."""
    return dict(zip(names, islice(cycle(_SERIES), len(names)), strict=True))


def ink_on(colour: str) -> str:
    """The colour of type on a ground."""
    return "white" if colour in _DARK else INK


def quiet_axes(axes: "Axes") -> None:
    """Only the lines that carry meaning: left and bottom, and a faint grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)


def titled(axes: "Axes", text: str) -> None:
    """A title over the left edge."""
    axes.set_title(text, loc="left", fontsize=_TITLE_SIZE)


def keyed(axes: "Axes", place: Literal["upper left", "upper right", "lower right"]) -> None:
    """A legend that covers as little as it can."""
    axes.legend(loc=place, fontsize=_KEY_SIZE, framealpha=0.9, edgecolor="none")


def plain_log(axis: "Axis") -> None:
    """Ticks of a log axis at 1, 2 and 5, in plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter  # noqa: PLC0415  optional extra

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(plain_ticks())
    axis.set_minor_formatter(NullFormatter())


def plain_ticks() -> "FuncFormatter":
    """Whole numbers with thousands separators, never powers."""
    from matplotlib.ticker import FuncFormatter  # noqa: PLC0415  optional extra

    return FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 or not value else f"{value:g}")
