"""What all pictures share: Okabe and Ito's palette for the color-blind, one kind of axes, one way to write a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.core.extras import require
from st_paragram.core.files import atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OURS, THEIRS = "#0072B2", "#D55E00"
#: Colors of further lines, with a marker for each.
COLOURS = (OURS, THEIRS, "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#333333", "#999999")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
SMALL = 9  # pt, the smallest letters


def check_plots() -> None:
    """Refuse pictures before work is done for them if matplotlib is not installed."""
    require("matplotlib", "plots", "a picture")


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of a size in inches; it needs no screen."""
    check_plots()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def tidy(axes: Axes) -> None:
    """Grid behind the points, no frame above and to the right."""
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def save(figure: Figure, path: Path) -> None:
    """Write the file, whole or not at all."""
    with atomic(path) as handle:
        figure.savefig(handle, dpi=110, format="png", metadata={"Software": None})
