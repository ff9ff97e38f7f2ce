"""Where to cut a list of scored pairs, and how good the part above the cut is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Extraction:
    """What was extracted above a threshold, counted as the BUCC shared task does.

    Args:
        threshold: Pairs of this score or a higher one were extracted.
        right: Extracted pairs that are gold pairs.
        extracted: All extracted pairs.
        gold: All gold pairs, found or not.
    """

    threshold: float
    right: int
    extracted: int
    gold: int

    @property
    def precision(self) -> float:
        """Share of the extracted pairs that are right; 0 if none was extracted."""
        return self.right / self.extracted if self.extracted else 0.0

    @property
    def recall(self) -> float:
        """Share of the gold pairs that were extracted; 0 if there is none."""
        return self.right / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall: 2 right / (extracted + gold)."""
        return 2 * self.right / (self.extracted + self.gold) if self.right else 0.0

    @property
    def figures(self) -> dict[str, float]:
        """Threshold, precision, recall and F1 by name."""
        return {"threshold": self.threshold, "precision": self.precision, "recall": self.recall, "f1": self.f1}


def best_threshold(scores: NDArray[np.float64], right: NDArray[np.bool_], gold: int) -> float:
    """The threshold of the highest F1: halfway between the last score taken and the first one left.

    Of equally good cuts the one that takes fewest. Pairs of one score are taken or left together. Infinite if no pair
    is right.

    Args:
        scores: Of the candidate pairs, (c,), in any order.
        right: Whether each is a gold pair, (c,).
        gold: Number of gold pairs, found or not.
    """
    order = np.argsort(-scores, kind="stable")
    scores, found = scores[order], np.cumsum(right[order])
    if not len(scores) or not found[-1]:
        return math.inf
    ends = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)  # last pair of each score
    f1 = 2 * found[ends] / (ends + 1 + gold)
    cut = int(ends[f1.argmax()])
    if cut + 1 == len(scores):
        return float(scores[cut])
    middle = float((scores[cut] + scores[cut + 1]) / 2)
    return middle if middle > scores[cut + 1] else float(scores[cut])


def extract(scores: NDArray[np.float64], right: NDArray[np.bool_], gold: int, threshold: float) -> Extraction:
    """Count what a threshold takes; arguments as `best_threshold`."""
    taken = scores >= threshold
    return Extraction(threshold, int(right[taken].sum()), int(taken.sum()), gold)
