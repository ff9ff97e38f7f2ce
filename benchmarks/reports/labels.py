"""Labels next to the points of a plot that cover neither each other nor the points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox

_Place = tuple[float, float]
_Side = Literal["left", "center", "right"]
_NEAR, _STEP, _FARTHEST = 11, 6, 240  # pt


@dataclass(frozen=True)
class Point:
    """A point with its label."""

    x: float
    y: float
    label: str
    ours: bool


def label_points(axes: Axes, points: Sequence[Point], size: float, others: Sequence[Point] = ()) -> None:
    """Write each point's label at the nearest place that is free, with a line to the point if that is far.

    The axes must have their limits and everything else that takes room around them.

    Args:
        axes: with the points.
        points: the labels' points.
        size: of the letters, in pt.
        others: points without labels, not to be covered either.
    """
    from matplotlib.transforms import Bbox

    figure = axes.get_figure()
    assert figure is not None
    figure.canvas.draw()  # fixes the layout
    unit = figure.dpi / 72
    places = [_place(axes, point) for point in (*points, *others)]
    taken = [Bbox.from_bounds(x - 4 * unit, y - 4 * unit, 8 * unit, 8 * unit) for x, y in places]
    inside = axes.get_window_extent()
    for point in sorted(points, key=lambda point: -point.y):
        candidates = _candidates(_place(axes, point), places, 60 * unit)
        label = axes.annotate(
            point.label, (point.x, point.y), xytext=(0, 0), textcoords="offset points", va="center", fontsize=size
        )
        for dx, dy, side in candidates:
            label.xyann = (dx, dy)
            label.set_horizontalalignment(side)
            box: Bbox = label.get_window_extent()
            within = inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0 and box.y1 <= inside.y1
            if within and not any(box.overlaps(other) for other in taken):
                break
        taken.append(label.get_window_extent())
        if abs(dy) > _NEAR:
            axes.annotate(
                "", (point.x, point.y), xytext=(dx, dy), textcoords="offset points",
                arrowprops={"arrowstyle": "-", "color": "#777777", "linewidth": 0.7},
            )  # fmt: skip


def _place(axes: Axes, point: Point) -> _Place:
    x, y = axes.transData.transform((point.x, point.y))
    return float(x), float(y)


def _candidates(place: _Place, places: Sequence[_Place], reach: float) -> list[tuple[int, int, _Side]]:
    """Offsets of a label, from the near to the far, first on the side where fewer points are at about that height."""
    beside = [x - place[0] for x, y in places if abs(y - place[1]) < reach]
    right = sum(distance > 0 for distance in beside) <= sum(distance < 0 for distance in beside)
    sides: tuple[tuple[int, _Side], ...] = ((1, "left"), (-1, "right")) if right else ((-1, "right"), (1, "left"))
    near: list[tuple[int, int, _Side]] = [
        *((8 * sign, 0, side) for sign, side in sides),
        (0, _NEAR, "center"),
        (0, -_NEAR, "center"),
    ]
    return near + [
        (sign * (14 + distance // 3), height, side)
        for distance in range(2 * _NEAR, _FARTHEST, _STEP)
        for height in (distance, -distance)
        for sign, side in sides
    ]
