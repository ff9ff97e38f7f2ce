"""Bootstrap resamples of many items: sums of what items count, and Spearman's correlation.

The same seed draws the same items whatever is measured on them, so that models can be compared on equal resamples.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from st_paragram.tools.evaluation.bootstrap import CHUNK, RESAMPLES, draw_counts

_LEAST = 1000
_DRAWS = 100_000_000  # items drawn in all, beyond which fewer resamples are taken
_FEW = 0.25  # different items, as a share of all: so few are drawn by kind, in a time that does not grow with all

Floats = NDArray[np.float64]


def resamples_for(items: int) -> int:
    """How many resamples are drawn: 10,000, fewer for more than 10,000 items, and at least 1,000."""
    return min(RESAMPLES, max(_LEAST, _DRAWS // items))


def resampled_sums(items: ArrayLike, resamples: int, seed: int = 0) -> Floats:
    """Sums over items that are drawn with replacement.

    Args:
        items: (n, C), what each item counts.
        resamples: R.
        seed: of the draws.

    Returns:
        (R, C).
    """
    rows = np.asarray(items, np.float64)
    random = np.random.default_rng(seed)
    kinds, sizes = np.unique(rows, axis=0, return_counts=True)
    if len(kinds) <= _FEW * len(rows):
        shares, step = sizes / len(rows), max(1, CHUNK // len(kinds))
        parts = [min(step, resamples - start) for start in range(0, resamples, step)]
        return np.concatenate([random.multinomial(len(rows), shares, size=some) @ kinds for some in parts])
    return np.concatenate([counts @ rows for counts in _drawn(len(rows), resamples, random)])


def resampled_spearman(scores: Floats, grades: Floats, resamples: int, seed: int = 0) -> Floats:
    """Spearman's correlation of pairs that are drawn with replacement, and ranked again each time.

    Args:
        scores: (n,).
        grades: (n,).
        resamples: R.
        seed: of the draws.

    Returns:
        (R,), NaN where all scores or all grades that were drawn are alike.
    """
    sides = [np.unique(values, return_inverse=True, return_counts=True)[1:] for values in (scores, grades)]
    orders = [(group, np.argsort(group, kind="stable"), np.cumsum(sizes) - sizes) for group, sizes in sides]
    parts, middle = [], (len(scores) + 1) / 2
    for counts in _drawn(len(scores), resamples, np.random.default_rng(seed)):
        x, y = (_ranks(counts, *order) - middle for order in orders)
        variances = (counts * x * x).sum(axis=1) * (counts * y * y).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            parts.append(np.where(variances > 0, (counts * x * y).sum(axis=1) / np.sqrt(variances), math.nan))
    return np.concatenate(parts)


def _ranks(counts: Floats, group: NDArray[np.intp], order: NDArray[np.intp], starts: NDArray[np.intp]) -> Floats:
    """The mean rank of each item among those that were drawn, (rows, n), where equal ones share a group."""
    drawn = np.add.reduceat(counts[:, order], starts, axis=1)
    ranks: Floats = (np.cumsum(drawn, axis=1) - (drawn - 1) / 2)[:, group]
    return ranks


def _drawn(items: int, resamples: int, random: np.random.Generator) -> Iterator[Floats]:
    step = max(1, CHUNK // items)
    for start in range(0, resamples, step):
        yield draw_counts(random, min(step, resamples - start), items)
