"""How sure a correlation is: percentile intervals, and paired comparison of two systems, by resampling pairs.

Efron & Tibshirani (1993), An Introduction to the Bootstrap, chapters 13 and 16; Koehn (2004), Statistical Significance
Tests for Machine Translation Evaluation, for the comparison on the same resamples.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from st_paragram.errors import EvaluationError
from st_paragram.tools.evaluation.results import Comparison, Interval

RESAMPLES = 10_000
LEVEL = 0.95
CHUNK = 500_000  # numbers drawn at a time, so that memory does not grow with sets or resamples
_NOTHING = 1e-12  # differences below are rounding: two equal systems must not differ


def resampled_pearson(
    scores: ArrayLike, grades: ArrayLike, resamples: int = RESAMPLES, seed: int | tuple[int, ...] = 0
) -> NDArray[np.float64]:
    """Pearson's correlation on resamples of the pairs, drawn with replacement; the same ones for all systems.

    A resample is a row of counts W; sums of x, x^2, xy, y, y^2 over it are W times a matrix, for all systems at once.

    Args:
        scores: (n,) of one system, or (K, n) of several.
        grades: (n,).
        resamples: R.
        seed: of the draws.

    Returns:
        (R,) or (K, R), float64; NaN where a resample (or the system) has constant scores or grades, or scores are NaN.

    Raises:
        EvaluationError: the shapes do not fit, there are fewer than two pairs, or no resamples.
    """
    values, gold = np.asarray(scores, np.float64), np.asarray(grades, np.float64)
    if gold.ndim != 1 or values.ndim not in (1, 2) or values.shape[-1] != len(gold) or len(gold) < 2:
        raise EvaluationError(f"bootstrap: scores of shape {values.shape} do not fit grades of shape {gold.shape}")
    if resamples < 1:
        raise EvaluationError(f"bootstrap: {resamples} resamples; give at least 1, ideally 10000")
    x = np.atleast_2d(values)
    x, y = x - x.mean(axis=1, keepdims=True), gold - gold.mean()
    columns = np.concatenate([x, x * x, x * y, [y, y * y]]).T  # (n, 3 K + 2)
    random = np.random.default_rng(seed)
    step = max(1, CHUNK // len(y))
    parts = []
    for start in range(0, resamples, step):
        counts = draw_counts(random, min(step, resamples - start), len(y))
        parts.append(_pearson(counts @ columns / len(y), len(x), columns.max(axis=0)))
    result = np.concatenate(parts, axis=1)
    return result[0] if values.ndim == 1 else result


def interval(resampled: NDArray[np.float64], level: float = LEVEL) -> Interval:
    """The percentile interval of resampled figures, (R,); undefined resamples are left out."""
    defined = resampled[np.isfinite(resampled)]
    if not len(defined):
        return Interval(math.nan, math.nan)
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def comparison(
    first: float, second: float, resampled_first: NDArray[np.float64], resampled_second: NDArray[np.float64]
) -> Comparison:
    """Compare two systems by their figures and by those on the same resamples.

    The p-value is twice the share of resamples on the rarer side of no difference, those without a difference counted
    on both sides and one added to both counts, so that it is never 0.

    Args:
        first: figure of the first system on all pairs; a correlation, or a mean of several.
        second: of the second.
        resampled_first: (R,).
        resampled_second: (R,), of the same draws.
    """
    differences = resampled_second - resampled_first
    differences = differences[np.isfinite(differences)]
    if not (math.isfinite(first) and math.isfinite(second) and len(differences)):
        return Comparison(math.nan, math.nan, math.nan, math.nan)
    differences[np.abs(differences) < _NOTHING] = 0.0
    rarer = min(int((differences <= 0).sum()), int((differences >= 0).sum()))
    ends = interval(differences)
    return Comparison(second - first, ends.low, ends.high, min(1.0, 2 * (rarer + 1) / (len(differences) + 1)))


def draw_counts(random: np.random.Generator, rows: int, n: int) -> NDArray[np.float64]:
    """How often each of n items is in each of some resamples, (rows, n)."""
    drawn = random.integers(0, n, (rows, n), dtype=np.int32)
    drawn += n * np.arange(rows, dtype=np.int32)[:, None]
    return np.bincount(drawn.reshape(-1), minlength=rows * n).reshape(rows, n).astype(np.float64)


def _pearson(means: NDArray[np.float64], systems: int, largest: NDArray[np.float64]) -> NDArray[np.float64]:
    """Correlations (K, rows) from means (rows, 3 K + 2); NaN where a variance is only rounding."""
    x, xx, xy = (means[:, k * systems : (k + 1) * systems] for k in range(3))
    y, yy = means[:, -2:-1], means[:, -1:]
    variance_x, variance_y = xx - x * x, yy - y * y
    constant = (variance_x <= 1e-12 * largest[systems : 2 * systems]) | (variance_y <= 1e-12 * largest[-1])
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (xy - x * y) / np.sqrt(variance_x * variance_y)
    result: NDArray[np.float64] = np.where(constant, math.nan, found).T
    return result
