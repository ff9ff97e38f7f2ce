"""A picture of a pair store: lengths of both sides, frequencies of pieces, length against length."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.figures import OURS, SMALL, THEIRS, new_figure, save, tidy
from st_paragram.tools.inspection.statistics import StoreInspection

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SHOWN = 0.998  # share of the sentences that the axes of lengths reach


def plot(inspection: StoreInspection, path: str | Path) -> None:
    """Draw an inspection into a PNG file; its folder is made if it is missing.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure = new_figure(14, 4.4)
    lengths, frequencies, joint = figure.subplots(1, 3)
    longest = max(int(np.searchsorted(np.cumsum(s.lengths), _SHOWN * inspection.pairs)) for s in inspection.sides)
    longest = max(longest, 4)
    _draw_lengths(lengths, inspection, longest)
    _draw_frequencies(frequencies, inspection)
    _draw_joint(figure, joint, inspection, longest)
    a, b = (side.language for side in inspection.sides)
    figure.suptitle(f"{Path(inspection.path).name}: {inspection.pairs:,} pairs {a}-{b}", fontsize=12)
    save(figure, Path(path))


def _names(inspection: StoreInspection) -> list[str]:
    return [f"{side.language} (side {name})" for side, name in zip(inspection.sides, "ab", strict=True)]


def _finish(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=11, loc="left")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.tick_params(labelsize=SMALL)
    tidy(axes)


def _draw_lengths(axes: Axes, inspection: StoreInspection, longest: int) -> None:
    """Share of sentences of each length, both sides, with their medians."""
    for side, name, color in zip(inspection.sides, _names(inspection), (OURS, THEIRS), strict=True):
        shares = np.zeros(longest + 1)
        shown = side.lengths[: longest + 1]
        shares[: len(shown)] = 100 * shown / inspection.pairs
        median = side.quantiles()[0.5]
        axes.step(np.arange(longest + 1), shares, where="mid", color=color, label=f"{name}, median {median}")
        axes.axvline(median, color=color, linewidth=0.9, linestyle=":")
    axes.set_xlim(0, longest)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=9)
    _finish(axes, "Length", "pieces in a sentence", "% of sentences")


def _draw_frequencies(axes: Axes, inspection: StoreInspection) -> None:
    """Occurrences of pieces by rank, a curve for each tokenizer, next to those that Zipf's law predicts."""
    labels = []
    for use, color in zip(inspection.tokenizers, (OURS, THEIRS), strict=False):
        seen = use.frequencies[: use.used]
        axes.loglog(np.arange(1, len(seen) + 1), seen, color=color, linewidth=1.6)
        share = 100 * use.used / max(use.ordinary, 1)
        labels.append(f"{use.used:,} of {use.ordinary:,} pieces occur, {share:.1f} %; {use.once:,} once")
    if len(labels) > 1:
        labels = [f"side {side}: {label}" for side, label in zip("ab", labels, strict=True)]
    if ranks := max(use.used for use in inspection.tokenizers):
        _draw_law(axes, np.arange(1, ranks + 1), max(int(use.frequencies[:1].sum()) for use in inspection.tokenizers))
    axes.grid(alpha=0.25)
    _finish(axes, "Pieces", "rank ({})".format("\n".join(labels)), "occurrences")


def _draw_law(axes: Axes, ranks: NDArray[np.int64], most: int) -> None:
    """Zipf's law: the piece of rank r occurs 1 / r as often as the most frequent one."""
    axes.loglog(ranks, np.maximum(most / ranks, 0.8), color="#777777", linewidth=0.9, linestyle="--")
    middle = ranks[-1] ** 0.5
    axes.text(middle, most / middle / 3, "1 / rank", color="#777777", fontsize=9, ha="right")
    axes.set_ylim(bottom=0.8)


def _draw_joint(figure: Figure, axes: Axes, inspection: StoreInspection, longest: int) -> None:
    """Pairs by the lengths of both sides, colors by the logarithm of their number."""
    from matplotlib.colors import LogNorm

    size = min(longest, len(inspection.joint) - 1) + 1
    counts = np.ma.masked_equal(inspection.joint[:size, :size].T, 0)
    image = axes.imshow(
        counts, origin="lower", cmap="viridis", norm=LogNorm(vmin=1), aspect="auto", interpolation="none"
    )
    axes.plot([0, size - 1], [0, size - 1], color="#777777", linewidth=0.9, linestyle="--")
    axes.set_xlim(0, size - 0.5)
    axes.set_ylim(0, size - 0.5)
    figure.colorbar(image, ax=axes, label="pairs")
    a, b = _names(inspection)
    _finish(axes, "Length against length", f"pieces, {a}", f"pieces, {b}")
