"""One picture of each table: medians, with the range from the slowest to the fastest round."""

from __future__ import annotations

from pathlib import Path

from harness.speed.report import number
from harness.speed.results import Measure, Spread, Table

from st_paragram.core.figures import OURS, THEIRS, new_figure, save, tidy

_LOGARITHMIC = 50  # largest over smallest median from which bars would hide the small ones
_GREY = "#777777"


def plot_table(table: Table, path: Path) -> None:
    """Draw a table as horizontal bars (points, where they differ by orders of magnitude) into a PNG file.

    Rows that were not measured are named, with the reason.
    """
    spreads = [table.spread(row) for row in table.rows]
    medians = [spread.median for spread in spreads if spread]
    logarithmic = bool(medians) and min(medians) > 0 and max(medians) / min(medians) > _LOGARITHMIC
    figure = new_figure(9, 1.5 + 0.42 * len(table.rows))
    axes = figure.subplots()
    start = min(medians) / 3 if logarithmic else 0.0
    for place, (row, spread) in enumerate(zip(table.rows, spreads, strict=True)):
        if spread is None:
            axes.text(start, place, f" {row.note}"[:90], va="center", color=_GREY, style="italic", fontsize=8)
            continue
        color = OURS if row.name.startswith("st_paragram") else THEIRS
        errors = [[spread.median - spread.low], [spread.high - spread.median]]
        if logarithmic:
            axes.errorbar(spread.median, place, xerr=errors, fmt="o", color=color, ecolor="black", capsize=3)
        else:
            axes.barh(place, spread.median, xerr=errors, color=color, height=0.62, capsize=3)
        label = f"  {number(spread.median)}{_ratio_label(table.ratio(row), row.name == table.reference)}"
        axes.text(spread.high, place, label, va="center", fontsize=8)
    axes.set_yticks(range(len(table.rows)), [row.name for row in table.rows])
    axes.set_ylim(len(table.rows) - 0.4, -0.6)  # the first row on top
    if logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(start, max(medians) * 20)
        axes.grid(axis="x", which="both", alpha=0.25)
    else:
        axes.set_xlim(0, 1.3 * max([spread.high for spread in spreads if spread], default=1.0))
        axes.xaxis.set_major_formatter("{x:,.6g}")
        axes.grid(axis="x", alpha=0.25)
    tidy(axes)
    better = "more is better" if table.measure is Measure.RATE else "less is better"
    scale = ", logarithmic" if logarithmic else ""
    axes.set_xlabel(f"{table.unit} ({better}{scale})\nmedian; line: slowest to fastest round")
    axes.set_title(table.title, fontsize=11, loc="left")
    save(figure, path)


def _ratio_label(ratio: Spread | None, is_reference: bool) -> str:
    """The speed as a part or a multiple of the reference's."""
    if ratio is None or is_reference:
        return ""
    return (
        f"   (1/{number(ratio.median)} of our speed)"
        if ratio.median >= 1
        else f"   ({number(1 / ratio.median)} x our speed)"
    )
