"""Where to cut a file of scored pairs, from a sample of pairs that somebody has judged; and a picture of the scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.figures import OURS, SMALL, THEIRS, new_figure, save, tidy
from st_paragram.core.files import output_files
from st_paragram.core.tables import markdown_table
from st_paragram.core.text.parallel import ReadCounts, TextSource, read_rows
from st_paragram.errors import SettingsError, TextError
from st_paragram.tools.bitext_mining.margin import Scores
from st_paragram.tools.bitext_mining.threshold import Extraction, best_threshold, extract

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_Z = 1.959964  # normal quantile of a two-sided interval of 95 %
_BINS = 120
_SHOWN = (0.0005, 0.9995)  # quantiles that the picture reaches


@dataclass(frozen=True)
class LabelledPairs:
    """n pairs that were judged by hand.

    Attributes:
        pairs: Their texts.
        right: Whether each is a good one, bool (n,).
    """

    pairs: list[tuple[str, str]]
    right: NDArray[np.bool_]


@dataclass(frozen=True)
class Cut:
    """A threshold and what it does.

    Attributes:
        name: What it was chosen for.
        sample: What it takes of the judged pairs; the threshold is infinite if none is enough.
        kept: Pairs of the file with this score or a higher one.
        pairs: All pairs of the file.
    """

    name: str
    sample: Extraction
    kept: int
    pairs: int

    @property
    def least_precision(self) -> float:
        """Lower end of the 95 % interval of the precision."""
        return float(wilson_lower(np.array(self.sample.right), np.array(self.sample.extracted)))


def read_labels(path: str) -> LabelledPairs:
    """Read `label TAB first TAB second`, label 1 for a good pair and 0 for a bad one.

    Raises:
        TextError: The file cannot be read, has other labels, or only one of the two.
    """
    pairs, right, counts = [], [], ReadCounts()
    for label, first, second in read_rows(TextSource((path,), ("label", "first"), further_columns=1), counts):
        if label.strip() not in ("0", "1"):
            raise TextError(f"{path}: row {counts.rows} has the label {label[:30]!r}; give 1 (good) or 0 (bad)")
        pairs.append((first, second))
        right.append(label.strip() == "1")
    if len(set(right)) < 2:
        seen = f"all {len(right)} pairs have one label"
        raise TextError(f"{path}: {seen}; a threshold needs both good and bad pairs, sampled at random from the file")
    return LabelledPairs(pairs, np.array(right))


def wilson_lower(right: NDArray[np.int64], taken: NDArray[np.int64]) -> NDArray[np.float64]:
    """Lower ends of 95 % intervals of shares (Wilson, JASA 1927), float64; 0 where nothing was taken."""
    n = np.maximum(taken, 1)
    share, z2 = right / n, _Z * _Z
    low = (share + z2 / (2 * n) - _Z * np.sqrt(share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return np.where(taken > 0, np.maximum(low, 0), 0.0)


def lowest_threshold(scores: Scores, right: NDArray[np.bool_], precision: float, surely: bool = False) -> float:
    """The lowest score at and above which the share of good pairs is large enough; infinite if there is none.

    Args:
        scores: Of the judged pairs, (n,).
        right: Whether each is a good one, (n,).
        precision: The share wanted.
        surely: The lower end of its 95 % interval must reach it, not the share itself.
    """
    order = np.argsort(-scores, kind="stable")
    scores, found = scores[order], np.cumsum(right[order], dtype=np.int64)
    last = np.append(scores[1:] < scores[:-1], True)  # pairs of one score are taken or left together
    taken = np.arange(1, len(scores) + 1)
    share = wilson_lower(found, taken) if surely else found / taken
    enough = np.flatnonzero(last & (share >= precision))
    return float(scores[enough[-1]]) if len(enough) else math.inf


def suggest(sample: Scores, right: NDArray[np.bool_], precision: float, scores: Scores) -> list[Cut]:
    """Thresholds for a precision, for the same beyond reasonable doubt, and for the best F1.

    Args:
        sample: Scores of the judged pairs, (n,).
        right: Whether each is a good one, (n,).
        precision: The share of good pairs wanted.
        scores: Of the file's pairs.

    Raises:
        SettingsError: The precision is not a share above 0.
    """
    if not 0 < precision <= 1:
        raise SettingsError(f"precision is {precision}; give a share above 0, at most 1")
    gold = int(right.sum())
    thresholds = {
        f"precision {precision:g}": lowest_threshold(sample, right, precision),
        f"precision {precision:g}, surely": lowest_threshold(sample, right, precision, surely=True),
        "best F1": best_threshold(sample, right, gold),
    }
    return [
        Cut(name, extract(sample, right, gold, threshold), int((scores >= threshold).sum()), len(scores))
        for name, threshold in thresholds.items()
    ]


def table(cuts: Sequence[Cut]) -> str:
    """The cuts as a Markdown table: shares in per cent, precision with the lower end of its 95 % interval."""
    rows = []
    for cut in cuts:
        sample = cut.sample
        if math.isinf(sample.threshold):
            rows.append([cut.name, "none", "-", "-", "-", "-", "-", "-"])
            continue
        shares = (sample.precision, cut.least_precision, sample.recall, sample.f1)
        kept = f"{cut.kept:,} ({100 * cut.kept / max(cut.pairs, 1):.1f} %)"
        taken = f"{sample.right} of {sample.extracted}"
        rows.append([cut.name, f"{sample.threshold:.6f}", taken, *(f"{100 * share:.1f}" for share in shares), kept])
    head = [
        "threshold for",
        "score",
        "good in the sample",
        "precision",
        "at least (95 %)",
        "recall",
        "F1",
        "pairs kept",
    ]
    return markdown_table(head, rows)


def plot(
    scores: Scores,
    path: str | Path,
    label: str,
    cuts: Sequence[Cut] = (),
    sample: Scores | None = None,
    right: NDArray[np.bool_] | None = None,
) -> None:
    """Draw a histogram of the scores into a PNG file, with that of a judged sample and its cuts if there are any.

    Args:
        scores: Of the file's pairs; the highest and lowest 0.05 % may be outside the picture.
        path: The file, in a folder that is made if need be.
        label: Of the axis: what the scores are.
        cuts: Thresholds to mark.
        sample: Scores of the judged pairs, (n,).
        right: Whether each is a good one, (n,).

    Raises:
        ParagramError: The file cannot be written, or another run is writing it.
        MissingExtraError: matplotlib is not installed.
    """
    figure = new_figure(8, 4.4)
    axes = figure.subplots()
    low, high = np.quantile(scores, _SHOWN)
    edges = np.linspace(low, high if high > low else low + 1e-6, _BINS + 1)
    _bars(axes, scores, len(scores), edges, {"color": "#BBBBBB", "fill": True, "label": f"all {len(scores):,} pairs"})
    if sample is not None and right is not None:
        coarse = edges[:: _BINS // 40]
        for name, chosen, color in (("good", right, OURS), ("bad", ~right, THEIRS)):
            shown = f"sample, {name} ({int(chosen.sum()):,})"
            _bars(axes, sample[chosen], len(sample), coarse, {"color": color, "linewidth": 1.6, "label": shown})
    for cut, line in zip(cuts, ("-", "--", ":"), strict=False):
        if math.isfinite(cut.sample.threshold):
            axes.axvline(cut.sample.threshold, color="#333333", linestyle=line, linewidth=1, label=cut.name)
    axes.set_xlabel(label)
    axes.set_ylabel("share of pairs, per unit of score")
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)
    axes.tick_params(labelsize=SMALL)
    axes.legend(frameon=False, fontsize=9)
    tidy(axes)
    with output_files(Path(path), overwrite=True):
        save(figure, Path(path))


def _bars(axes: Axes, scores: Scores, total: int, edges: Scores, style: dict[str, Any]) -> None:
    """Densities: the area is their share of so many pairs, those within the edges."""
    counts, _ = np.histogram(scores, edges)
    axes.stairs(counts / (total * np.diff(edges)), edges, **style)
