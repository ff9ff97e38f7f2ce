"""Confidence intervals of scores, and comparisons of models, by the bootstrap.

Intervals are percentiles (Efron and Tibshirani 1993, An Introduction to the Bootstrap, chapter 13),
and p-values are those of chapter 16. Models are compared on the same resamples (Koehn 2004,
Statistical Significance Tests for Machine Translation Evaluation).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from st_paragram.core.arrays import Floats, Integers
from st_paragram.tools.evaluation.scores import Score, pearson

RESAMPLES = 10_000
_MINIMUM_RESAMPLES = 1000
_TOTAL_DRAWS = 20_000_000  # maximum number of items to draw for all resamples
_BATCH = 250_000  # items drawn at a time
_ROUNDING = 1e-12  # smaller differences count as 0, so that two equal systems do not differ

Statistic = Callable[[Integers], Floats]
Seed = int | tuple[int, ...]


def resampled(statistic: Statistic, items: int, seed: Seed = 0) -> Floats:
    """Return a statistic of all n items, followed by those of R resamples, float64 (1 + R,).

    R is 10,000, or less for more than 2,000 items, but at least 1,000. The statistic takes rows of
    items, int64 (b, n), and returns b figures. The same seed draws the same items, so that models
    can be compared. A single item has no resamples: their figures are NaN.
    """
    from scipy.stats import bootstrap

    numbers = np.arange(items)
    whole = statistic(numbers[None])
    if items < 2:
        return np.concatenate([whole, np.full(RESAMPLES, math.nan)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # resamples whose correlation is undefined
        result = bootstrap(
            (numbers,),
            lambda rows, axis: statistic(rows.reshape(-1, items)),
            n_resamples=min(RESAMPLES, max(_MINIMUM_RESAMPLES, _TOTAL_DRAWS // items)),
            batch=max(1, _BATCH // items),
            vectorized=True,
            method="percentile",
            rng=np.random.default_rng(seed),
        )
    return np.concatenate([whole, result.bootstrap_distribution])


def resampled_pearson(
    scores: Floats,
    grades: Floats,
    seed: Seed = 0,
    form: Callable[[Floats], Floats] = np.asarray,
) -> Floats:
    """Return Pearson's correlation as in `resampled`, or Spearman's if `form` is `ranks`."""

    def statistic(rows: Integers) -> Floats:
        return pearson(form(scores[rows]), form(grades[rows]))

    return resampled(statistic, len(grades), seed)


def with_interval(score: Score, figures: Floats) -> Score:
    """Give a score its value and interval, from the figures of `resampled`, (1 + R,)."""
    draws = figures[1:]
    low, high = interval(draws)
    return replace(score, value=float(figures[0]), low=low, high=high, draws=draws)


def interval(draws: Floats) -> tuple[float | None, float | None]:
    """Return the ends of the 95% percentile interval; undefined resamples are ignored."""
    if not np.isfinite(draws).any():
        return None, None
    low, high = np.nanquantile(draws, [0.025, 0.975])
    return float(low), float(high)


def differences(scores: Iterable[Score]) -> list[Score]:
    """Return the differences of further models from the first, for scores with resamples."""
    firsts: dict[tuple[str, str, str], Score] = {}
    compared = []
    for score in scores:
        first = firsts.setdefault((score.benchmark, score.set, score.measure), score)
        if first is not score and first.draws is not None and score.draws is not None:
            compared.append(_difference(first, score, score.draws - first.draws))
    return compared


def _difference(first: Score, score: Score, draws: Floats) -> Score:
    """Return the difference of a score from that of the first model, with interval and p-value.

    `draws` has the differences of the resamples, (R,).
    """
    difference = replace(score, value=None, low=None, high=None, against=first.model, draws=None)
    if score.value is None or first.value is None:
        return difference
    difference = replace(difference, value=score.value - first.value)
    draws = draws[np.isfinite(draws)]
    if not len(draws):
        return difference
    low, high = interval(draws)
    return replace(difference, low=low, high=high, p_value=p_value(draws))


def p_value(differences: Floats) -> float:
    """Return the two-sided p-value: twice the share of resamples on the rarer side of 0.

    It is never 0, since 1 is added to both counts.
    """
    differences = np.where(np.abs(differences) < _ROUNDING, 0.0, differences)
    below = int((differences <= 0).sum())
    above = int((differences >= 0).sum())
    return min(1.0, 2 * (min(below, above) + 1) / (len(differences) + 1))
