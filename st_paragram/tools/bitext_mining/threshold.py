"""Thresholds for scored pairs, and the quality of the pairs above them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from st_paragram.core.arrays import Floats, Integers, Mask
from st_paragram.core.formatting import markdown_table
from st_paragram.core.text.parallel import ReadCounts, TextSource, read_rows
from st_paragram.errors import TextError
from st_paragram.tools.bitext_mining.margin import Scores

_Z = 1.959964  # normal quantile of a two-sided interval of 95%
_HEAD = (
    "threshold for",
    "score",
    "good in the sample",
    "precision",
    "at least (95%)",
    "recall",
    "F1",
    "pairs kept",
)


@dataclass(frozen=True)
class Extraction:
    """Counts of the pairs above a threshold, as in the BUCC shared task."""

    threshold: float  # pairs with at least this score were extracted
    right: int  # extracted pairs that are gold pairs
    extracted: int
    gold: int  # all gold pairs, extracted or not

    @property
    def precision(self) -> float:
        """Share of the extracted pairs that are right; 0 if none was extracted."""
        return self.right / self.extracted if self.extracted else 0.0

    @property
    def recall(self) -> float:
        """Share of the gold pairs that were extracted; 0 if there are none."""
        return self.right / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall: 2 right / (extracted + gold)."""
        return 2 * self.right / (self.extracted + self.gold) if self.right else 0.0

    @property
    def figures(self) -> dict[str, float]:
        """Return threshold, precision, recall and F1 by name."""
        return {
            "threshold": self.threshold,
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
        }


def best_threshold(scores: Scores, right: Mask, gold: int) -> float:
    """Return the threshold with the highest F1.

    It is halfway between the last score above and the first score below. Of equally good
    thresholds, it is the highest. Pairs with equal scores stay together. Infinite
    if no pair is right. `right` marks the pairs that are among the `gold` gold pairs, some of which
    may be missing.
    """
    order = np.argsort(-scores, kind="stable")
    scores = scores[order]
    right_counts = np.cumsum(right[order])
    if not len(scores) or not right_counts[-1]:
        return math.inf
    ends = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)  # last pair with each score
    f1 = 2 * right_counts[ends] / (ends + 1 + gold)
    cut = int(ends[f1.argmax()])
    if cut + 1 == len(scores):
        return float(scores[cut])
    middle = float((scores[cut] + scores[cut + 1]) / 2)
    return middle if middle > scores[cut + 1] else float(scores[cut])


def extract(scores: Scores, right: Mask, gold: int, threshold: float) -> Extraction:
    """Count the pairs above a threshold; arguments as for `best_threshold`."""
    taken = scores >= threshold
    return Extraction(threshold, int(right[taken].sum()), int(taken.sum()), gold)


@dataclass(frozen=True)
class Cut:
    """A threshold and its effect."""

    name: str  # the criterion
    # labeled pairs above the threshold, which is infinite if no threshold meets the criterion
    sample: Extraction
    kept: int  # pairs of the file with at least this score
    pairs: int  # all pairs of the file

    def row(self) -> list[str]:
        """Format a table row, with shares in percent."""
        sample = self.sample
        if math.isinf(sample.threshold):
            return [self.name, "none", *"------"]
        lower = float(wilson_lower(np.array(sample.right), np.array(sample.extracted)))
        return [
            self.name,
            f"{sample.threshold:.6f}",
            f"{sample.right} of {sample.extracted}",
            f"{100 * sample.precision:.1f}",
            f"{100 * lower:.1f}",
            f"{100 * sample.recall:.1f}",
            f"{100 * sample.f1:.1f}",
            f"{self.kept:,} ({100 * self.kept / max(self.pairs, 1):.1f} %)",
        ]


def read_labels(path: str) -> tuple[list[tuple[str, str]], Mask]:
    """Read rows `label TAB first TAB second`, label 1 for good and 0 for bad pairs.

    Returns:
        n pairs, and which are good, (n,).
    """
    pairs = []
    right = []
    counts = ReadCounts()
    source = TextSource((path,), ("label", "first"), further_columns=1)
    for label, first, second in read_rows(source, counts):
        if label.strip() not in ("0", "1"):
            raise TextError(
                f"{path}: row {counts.rows} has the label {label[:30]!r}; give 1 (good) or 0 (bad)"
            )
        pairs.append((first, second))
        right.append(label.strip() == "1")
    if len(set(right)) < 2:
        raise TextError(
            f"{path}: all {len(right):,} pairs have the same label; a threshold needs both good and"
            " bad pairs, sampled at random from the file"
        )
    return pairs, np.array(right)


def wilson_lower(right: Integers, taken: Integers) -> Floats:
    """Return the lower ends of 95% intervals of shares (Wilson, JASA 1927).

    An end is 0 if nothing was taken.
    """
    n = np.maximum(taken, 1)
    share = right / n
    z2 = _Z * _Z
    width = _Z * np.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    low = (share + z2 / (2 * n) - width) / (1 + z2 / n)
    return np.where(taken > 0, np.maximum(low, 0), 0.0)


def lowest_threshold(scores: Scores, right: Mask, precision: float, surely: bool = False) -> float:
    """Return the lowest score above which the share of good pairs reaches `precision`.

    It is infinite if there is none. With `surely`, the lower end of the share's 95% interval must
    reach it.
    """
    order = np.argsort(-scores, kind="stable")
    scores = scores[order]
    right_counts = np.cumsum(right[order], dtype=np.int64)
    last = np.append(scores[1:] < scores[:-1], True)  # pairs with equal scores stay together
    taken = np.arange(1, len(scores) + 1)
    share = wilson_lower(right_counts, taken) if surely else right_counts / taken
    enough = np.flatnonzero(last & (share >= precision))
    return float(scores[enough[-1]]) if len(enough) else math.inf


def suggest(sample: Scores, right: Mask, precision: float, scores: Scores) -> list[Cut]:
    """Suggest thresholds for a precision, for its 95% interval, and for the best F1.

    `sample` has the scores of labeled pairs, `right` whether each is good, and `scores` the scores
    of the whole file.
    """
    gold = int(right.sum())
    thresholds = {
        f"precision {precision:g}": lowest_threshold(sample, right, precision),
        f"precision {precision:g}, surely": lowest_threshold(sample, right, precision, surely=True),
        "best F1": best_threshold(sample, right, gold),
    }
    cuts = []
    for name, threshold in thresholds.items():
        extraction = extract(sample, right, gold, threshold)
        kept = int((scores >= threshold).sum())
        cuts.append(Cut(name, extraction, kept=kept, pairs=len(scores)))
    return cuts


def table(cuts: Sequence[Cut]) -> str:
    """Format the thresholds as a Markdown table."""
    return markdown_table(_HEAD, [cut.row() for cut in cuts])
