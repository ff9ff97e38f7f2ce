"""Tables and a picture of time and memory by the length of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from harness.length_runs import LengthRun
from harness.report import number

from st_paragram.core.figures import COLOURS, MARKERS, SMALL, new_figure, save, tidy
from st_paragram.core.tables import MISSING, markdown_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _HEIGHT = 8.0, 4.1
_GREY = "#777777"
_NOISE_MB = 0.5  # below, growth is that of single pages
_SLOPES = {1: "n", 2: "n²"}
_Figure = Callable[[LengthRun], float | None]


def exponent(lengths: Sequence[int], values: Sequence[float | None]) -> float | None:
    """The power k of value = c * length^k by least squares of logarithms, or None.

    None where there are fewer than two lengths, or a value is missing or not above 0.
    """
    known = [value for value in values if value is not None and value > 0]
    if len(lengths) < 2 or len(known) < len(lengths):
        return None
    return float(np.polyfit(np.log(lengths), np.log(known), 1)[0])


def upper_half(runs: Sequence[LengthRun]) -> list[LengthRun]:
    """Runs of the longer half of the lengths, the middle one included."""
    lengths = sorted({run.length for run in runs})
    return [run for run in runs if run.length >= lengths[(len(lengths) - 1) // 2]]


def length_tables(runs: Sequence[LengthRun], batch: int) -> list[str]:
    """Time, memory, and how both grow, as Markdown with a title before each table.

    Args:
        runs: of all models and devices, each with the same lengths in increasing order.
        batch: texts of a call.
    """
    lengths, upper = list(dict.fromkeys(run.length for run in runs)), upper_half(runs)
    first, last = min(run.length for run in upper), max(run.length for run in upper)
    head = ["tokens", *map(str, lengths)]
    times = [[name, *map(_time_cell, own)] for name, own in _series(runs).items()]
    memory = [[name, *_memory_cells(own)] for name, own in _series(runs).items()]
    growth = ["", "time", "memory", f"ms at {last}", "x row above", "KB a token", "x row above", "loaded, MB"]
    return [
        f"The milliseconds that `encode` takes a text when it is given {batch} of them, and in brackets those of "
        "tokenisation. Figures are medians.",
        markdown_table(head, times),
        f"The memory in MB that {batch} texts need beyond the loaded model, and in brackets how many times that of the "
        "length before it is.",
        markdown_table(head, memory),
        f"How both grow from {first} to {last} tokens. *Time* and *memory* are the powers of the length that fit best. "
        "*KB a token* is the memory that each further token of a text needs, in units of 2^10 bytes. "
        "*x row above* is how many times the figure of the row above it is.",
        markdown_table(growth, _growth_rows(_series(upper), batch)),
    ]


def _series(runs: Sequence[LengthRun]) -> dict[str, list[LengthRun]]:
    """Runs by name: of the model, and of the device where there are several."""
    several = len({run.device for run in runs}) > 1
    series: dict[str, list[LengthRun]] = {}
    for run in runs:
        series.setdefault(f"{run.model}, {run.device}" if several else run.model, []).append(run)
    return series


def _time_cell(run: LengthRun) -> str:
    return f"{number(1000 * run.time)} ({number(1000 * run.token_time)})"


def _memory_cells(runs: Sequence[LengthRun]) -> list[str]:
    values = [_extra_mb(run) for run in runs]
    return [
        _cell(value) + (f" ({value / before:.1f} x)" if value is not None and before and before > _NOISE_MB else "")
        for before, value in zip([None, *values], values, strict=False)
    ]


def _growth_rows(series: dict[str, list[LengthRun]], batch: int) -> list[list[str]]:
    rows: list[list[str]] = []
    above: tuple[float | None, float | None] = (None, None)
    device = None
    for name, runs in series.items():
        if runs[0].device != device:
            above, device = (None, None), runs[0].device
        lengths = [run.length for run in runs]
        exponents = [exponent(lengths, [figure(run) for run in runs]) for figure in (_seconds, _extra_mb)]
        here = (1000 * runs[-1].time, _kb_a_token(runs, batch))
        cells = [_cell(each) for pair in zip(here, map(_ratio, here, above), strict=True) for each in pair]
        memory = runs[-1].memory
        loaded = MISSING if memory is None else f"{memory.loaded_mb:.0f}"
        powers = [MISSING if each is None else f"{round(each, 2) + 0:.2f}" for each in exponents]
        rows.append([name, *powers, *cells, loaded])
        above = here
    return rows


def _kb_a_token(runs: Sequence[LengthRun], batch: int) -> float | None:
    """How memory grows from the first to the last of these lengths, for each token of one text."""
    first, last = (_extra_mb(run) for run in (runs[0], runs[-1]))
    if first is None or last is None or len(runs) < 2:
        return None
    return (last - first) * 2**10 / (runs[-1].length - runs[0].length) / batch


def _ratio(value: float | None, before: float | None) -> float | None:
    return None if value is None or not before or before < 0 else value / before


def _cell(value: float | None) -> str:
    return MISSING if value is None else number(round(value, 4))


def _seconds(run: LengthRun) -> float | None:
    return run.time


def _extra_mb(run: LengthRun) -> float | None:
    return None if run.memory is None else run.memory.extra_mb


def plot_lengths(runs: Sequence[LengthRun], batch: int, path: Path) -> None:
    """Draw time and memory against length into a PNG file, both axes logarithmic, with lines of slope 1 and 2.

    Memory that was not measured has no panel.
    """
    figure = new_figure(_WIDTH, _HEIGHT)
    titles = ("milliseconds a text", f"extra memory of {batch} texts, MB")
    figures: tuple[_Figure, ...] = (lambda run: 1000 * run.time, _extra_mb)
    drawn = [each for each in zip(titles, figures, strict=True) if any(each[1](run) for run in runs)]
    for axes, (title, of) in zip(figure.subplots(1, len(drawn), squeeze=False)[0], drawn, strict=True):
        _draw(axes, runs, of)
        axes.set_title(title, fontsize=SMALL + 1, loc="left")
        axes.set_xlabel("tokens of a text")
        tidy(axes)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=SMALL)
    save(figure, path)


def _draw(axes: Axes, runs: Sequence[LengthRun], of: _Figure) -> None:
    """One panel; a colour for each model, a dotted line with hollow points on a GPU."""
    models, lengths = (list(dict.fromkeys(getattr(run, name) for run in runs)) for name in ("model", "length"))
    axes.set_xscale("log")
    axes.set_yscale("log")
    drawn: list[float] = []
    for name, own in _series(runs).items():
        points = [(run.length, value) for run in own if (value := of(run)) is not None and value > 0]
        place, gpu = models.index(own[0].model) % len(COLOURS), own[0].device != "cpu"
        x, y = [length for length, _ in points], [value for _, value in points]
        (line,) = axes.plot(x, y, color=COLOURS[place], marker=MARKERS[place], markersize=5, label=name)
        if gpu:
            line.set(linestyle=":", markerfacecolor="white")
        drawn += y
    axes.set_xticks(lengths, [str(length) for length in lengths], fontsize=SMALL)
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.grid(alpha=0.25)
    _guide(axes, lengths, min(drawn), max(drawn))


def _guide(axes: Axes, lengths: Sequence[int], least: float, most: float) -> None:
    """Dashed lines of slope 1 and 2 that meet above the longest texts."""
    bottom, top, last = least / 2, most * 4, max(lengths)
    for slope, label in _SLOPES.items():
        start = max(min(lengths), last * (bottom / top) ** (1 / slope))
        ends = [start, last]
        heights = [top * (x / last) ** slope for x in ends]
        axes.plot(ends, heights, color=_GREY, linestyle="--", linewidth=0.9, zorder=1)
        above = slope == 1
        axes.annotate(
            f"∝ {label}",
            (start, heights[0]),
            xytext=(4, 14) if above else (28, 4),
            textcoords="offset points",
            va="bottom",
            color=_GREY,
        )
    axes.set_ylim(bottom, top * 1.2)
