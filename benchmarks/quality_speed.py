"""Draw docs/images/quality-speed.png: `python benchmarks/quality_speed.py docs/images/quality-speed.png`.

Figures are copied from docs/models.md and docs/results.md, which have the commands behind them. All are of one
CPU core. The published ones were measured on the paper's machine, without the time of preprocessing; ours here,
with it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from st_paragram.core.figures import OURS, SMALL, THEIRS, new_figure, save, tidy

# Name, sentences per second, STS 2012-2016 (Pearson x 100, mean over sets and years), where the name stands, ours or
# theirs. The rate of p-sp-mul is that of an earlier model of the same size. Ours are without 2013's SMT, theirs with.
POINTS = (
    ("p-sp-mul", 133_867, 73.7, (-8, 0), True),
    ("p-sp-mini (8 MB)", 297_709, 69.4, (-8, 0), True),
    ("untrained P-SP", 159_568, 52.2, (-8, 0), True),
    ("P-SP, EMNLP 2022", 12_776, 74.6, (-8, 0), False),
    ("Sentence-BERT", 2, 70.9, (8, 0), False),
    ("LASER", 26, 64.9, (8, 0), False),
    ("InferSent", 16, 64.4, (-8, 0), False),
)


def main() -> int:
    """Draw and write the picture."""
    figure = new_figure(8.2, 4.2)
    axes = figure.add_subplot()
    for name, rate, score, offset, ours in POINTS:
        axes.plot(
            rate, score, "o" if ours else "D", color=OURS if ours else THEIRS, fillstyle="full" if ours else "none"
        )
        side = "left" if offset[0] > 0 else "right"
        axes.annotate(name, (rate, score), offset, textcoords="offset points", ha=side, va="center")
    axes.set(xscale="log", xlim=(1, 1e6), ylim=(50, 78))
    axes.set_xlabel("sentences per second on one CPU core (logarithmic)")
    axes.set_ylabel("similarity, Pearson x 100")
    axes.set_title("STS 2012-2016: quality against speed", loc="left")
    axes.grid(alpha=0.25)
    tidy(axes)
    axes.text(
        0.01,
        0.02,
        "Filled: this package (docs/models.md, results.md; without SMT 2013).\n"
        "Open: published in EMNLP 2022, on the paper's machine (with SMT 2013).",
        transform=axes.transAxes,
        fontsize=SMALL,
        color="#555555",
    )
    save(figure, Path(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
