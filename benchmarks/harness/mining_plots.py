"""Pictures of the benchmarks of mining."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.mining_indexes import IndexPoint
from harness.mining_scaling import STAGES, Size
from st_paragram.core.figures import COLOURS, MARKERS, SMALL, new_figure, save, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_scaling(sizes: Sequence[Size], path: Path) -> Path:
    """Seconds of each stage against the number of sentences a side, both logarithmic.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure, axes = _figure()
    counts = [size.sentences for size in sizes]
    for number, stage in enumerate((*STAGES, "all")):
        seconds = [size.seconds if stage == "all" else size.stages.get(stage, 0.0) for size in sizes]
        shown = [(count, value) for count, value in zip(counts, seconds, strict=True) if value > 0.01]
        if shown:
            style: dict[str, Any] = {
                "color": COLOURS[number % len(COLOURS)],
                "marker": MARKERS[number % len(MARKERS)],
            }
            axes.loglog(*zip(*shown, strict=True), label=stage, linewidth=2.5 if stage == "all" else 1.2, **style)
    axes.set_xlabel("sentences on each side")
    axes.set_ylabel("seconds")
    axes.set_title("Time of mining by stage", fontsize=11, loc="left")
    return _save(figure, axes, path)


def plot_indexes(points: Sequence[IndexPoint], path: Path) -> Path:
    """Recall against queries a second, a line for each index.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure, axes = _figure()
    for number, index in enumerate(dict.fromkeys(point.index for point in points)):
        own = [point for point in points if point.index == index]
        xs, ys = [point.queries_per_second for point in own], [point.recall for point in own]
        style: dict[str, Any] = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
        axes.semilogx(xs, ys, label=f"{index} (exact)" if own[0].effort is None else index, **style)
    axes.set_xlabel("queries a second (logarithmic; more is better)")
    axes.set_ylabel("recall of the nearest neighbours")
    axes.set_title("What an index saves and what it loses", fontsize=11, loc="left")
    return _save(figure, axes, path)


def _figure() -> tuple[Figure, Axes]:
    figure = new_figure(7, 5)
    return figure, figure.subplots()


def _save(figure: Figure, axes: Axes, path: Path) -> Path:
    axes.grid(which="both", alpha=0.25)
    tidy(axes)
    axes.legend(frameon=False, fontsize=SMALL)
    save(figure, path)
    return path
