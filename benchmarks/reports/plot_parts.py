"""Parts of the report's pictures: files and captions, points of two kinds, axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reports.labels import Point
from reports.sts import AVERAGE
from st_paragram.core.figures import OURS, SMALL, THEIRS, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Plot:
    """A picture in a file, and what to say of it."""

    path: Path
    title: str
    caption: str

    def markdown(self, report: Path) -> str:
        """The picture with its caption, for a report in that file."""
        try:
            place = self.path.resolve().relative_to(report.resolve().parent).as_posix()
        except ValueError:  # elsewhere
            place = self.path.resolve().as_posix()
        return f"![{self.title}]({place})\n\n{self.caption}"


def scatter(axes: Axes, points: Sequence[Point], room: float) -> None:
    """Dots, with room on both sides for labels: the ends of the logarithmic axis by that factor."""
    for point in points:
        dot(axes, point.x, point.y, point.ours)
    axes.set_xlim(min(point.x for point in points) / room, max(point.x for point in points) * room)
    axes.margins(y=0.1)
    axes.grid(alpha=0.25)
    axes.tick_params(labelsize=SMALL)
    tidy(axes)


def dot(axes: Axes, x: float, y: float, ours: bool) -> None:
    """A point: ours full and round, a published one an empty diamond."""
    color = OURS if ours else THEIRS
    axes.plot(x, y, "o" if ours else "D", color=color, markerfacecolor=color if ours else "white", markersize=6)


def legend(figure: Figure) -> None:
    """What the two kinds of points are, above the plot."""
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], linestyle="", marker="o", color=OURS, markersize=6, label="ours"),
        Line2D([], [], linestyle="", marker="D", color=THEIRS, markerfacecolor="white", label="published"),
    ]
    figure.legend(handles=marks, loc="outside upper right", ncols=2, fontsize=10, frameon=False)


def average_axis(column: str) -> str:
    """Label of an axis of STS averages, `column` being the one ours are from."""
    return "STS 2012-2016, Pearson x 100, average" + (" (ours without SMT)" if column != AVERAGE else "")


def without_smt(column: str) -> str:
    """A sentence for the caption if ours and the published averages are not of the same data."""
    return "" if column == AVERAGE else " Our averages are without STS 2013's SMT data, the published ones are with it."
