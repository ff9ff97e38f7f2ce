"""Scores: the one row that every benchmark gives, embeddings and correlations, and intervals by the bootstrap.

Efron & Tibshirani (1993), An Introduction to the Bootstrap, chapters 13 and 16; Koehn (2004), Statistical Significance
Tests for Machine Translation Evaluation, for the comparison of two systems on the same resamples.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from st_paragram.core.encoding.models import TextEncoder, batch_size
from st_paragram.core.encoding.record import Correlation
from st_paragram.core.files import folder_for_file, read_json, write_json
from st_paragram.errors import EvaluationError, refused
from st_paragram.tools.evaluation.files import GradedPairs

DECIMALS = 6  # of a cosine: the digits after them are rounding of float32, which must not rank pairs
RESAMPLES = 10_000
_FEWEST, _DRAWS = 1000, 20_000_000  # resamples of many items, and items drawn in all
_BATCH = 250_000  # items drawn at a time
_ROUNDING = 1e-12  # two equal systems must not differ

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Score:
    """One figure of one model.

    Args:
        model: its name, as it was given.
        benchmark: such as "sts".
        set: a data set or a mean over several, such as "2012/MSRpar" or "average".
        measure: such as "Pearson" or "error".
        value: a share in 0 .. 1, or a correlation in -1 .. 1; None where there is none (constant or broken cosines).
        low: lower end of the 95 % interval.
        high: upper end.
        items: pairs, queries or sentences that were scored.
        against: the model that this one is compared with; `value` is then the difference.
        p_value: two-sided, of no difference.
    """

    model: str
    benchmark: str
    set: str
    measure: str
    value: float | None
    low: float | None = None
    high: float | None = None
    items: int = 0
    against: str = ""
    p_value: float | None = None


def write_scores(scores: Iterable[Score], path: str | Path) -> None:
    """Write scores as a JSON list of objects, whole or not at all."""
    write_json(Path(path), [asdict(score) for score in scores])


def read_scores(path: str | Path) -> list[Score]:
    """Read what `write_scores` wrote."""
    advice = "make it with `st-paragram evaluate --json`"
    if wrong := folder_for_file(path, "a file of scores"):
        raise EvaluationError(f"{wrong}; {advice}")
    with refused(EvaluationError, path, "not a list of scores", advice):
        return [Score(**row) for row in read_json(path)]


def embed(model: TextEncoder, texts: list[str], encode: Callable[..., Any] | None = None) -> NDArray[np.float32]:
    """Embeddings of length 1, float32 (n, D), by `encode` or the model's own."""
    encode, at_once = encode or model.encode, batch_size(model)
    vectors: Any = encode(texts, batch_size=at_once, normalize_embeddings=True, show_progress_bar=False)
    return np.asarray(vectors, dtype=np.float32)


def pair_cosines(model: TextEncoder, pairs: GradedPairs) -> Floats:
    """Cosine of each pair, (n,), to 6 decimals; NaN or infinite where the model gives such numbers."""
    vectors = embed(model, pairs.first + pairs.second)
    first, second = (side.astype(np.float64) for side in (vectors[: len(pairs)], vectors[len(pairs) :]))
    products: Floats = np.einsum("nd,nd->n", first, second)
    return products.round(DECIMALS)


def cosines(model: TextEncoder, pairs: GradedPairs) -> Floats:
    """As `pair_cosines`, but a cosine that is not finite is an error."""
    result = pair_cosines(model, pairs)
    if not np.isfinite(result).all():
        row = int(np.flatnonzero(~np.isfinite(result))[0]) + 1
        raise EvaluationError(f"{pairs.name}: the score of pair {row} is {result[row - 1]}; the model is broken")
    return result


def correlation(scores: ArrayLike, grades: ArrayLike) -> Correlation:
    """Pearson's and Spearman's correlation; NaN where scores or grades are constant or not finite, or of one pair."""
    x, y = np.asarray(scores, np.float64), np.asarray(grades, np.float64)
    if len(x) < 2 or not np.isfinite(x).all() or np.ptp(x) < 1e-9 or np.ptp(y) == 0:
        return Correlation(math.nan, math.nan)
    return Correlation(float(pearson(x, y)), float(pearson(ranks(x), ranks(y))))


def correlate(model: TextEncoder, pairs: GradedPairs) -> Correlation:
    """Correlate the cosines of embeddings with the grades."""
    return correlation(cosines(model, pairs), pairs.grades)


def pearson(x: Floats, y: Floats) -> Floats:
    """Pearson's correlation along the last axis; NaN where one side is constant."""
    x, y = (side - side.mean(axis=-1, keepdims=True) for side in (x, y))
    squares = [np.einsum("...n,...n", side, side) for side in (x, y)]
    products = np.einsum("...n,...n", x, y)
    constant = (squares[0] <= 1e-20) | (squares[1] <= 1e-20)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(constant, math.nan, products / np.sqrt(squares[0] * squares[1]))


def ranks(values: Floats) -> Floats:
    """Ranks from 1 on along the last axis; equal values share the mean of their ranks."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(values, axis=-1))


def resampled(statistic: Callable[[NDArray[np.int64]], Floats], items: int, seed: int | tuple[int, ...] = 0) -> Floats:
    """A statistic on resamples of the items: 10,000 of them, fewer for more than 2,000 items, and at least 1,000.

    Args:
        statistic: takes rows that were drawn, int64 (b, n), and returns b figures.
        items: n.
        seed: of the draws. The same seed draws the same items, so that models can be compared.

    Returns:
        float64 (R,).
    """
    from scipy.stats import bootstrap

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # resamples without a correlation
        found = bootstrap(
            (np.arange(items),),
            lambda rows, axis: statistic(rows.reshape(-1, items)),
            n_resamples=min(RESAMPLES, max(_FEWEST, _DRAWS // items)),
            batch=max(1, _BATCH // items),
            vectorized=True,
            method="percentile",
            rng=np.random.default_rng(seed),
        )
    return np.asarray(found.bootstrap_distribution)


def interval(draws: Floats | None) -> tuple[float | None, float | None]:
    """The ends of the 95 % percentile interval; undefined resamples are left out."""
    if draws is None or not np.isfinite(draws).any():
        return None, None
    low, high = np.nanquantile(draws, [0.025, 0.975])
    return float(low), float(high)


def p_value(differences: Floats) -> float:
    """Twice the share of resamples on the rarer side of no difference.

    Those without a difference count on both sides, and one is added to both counts, so that it is never 0.
    """
    differences = np.where(np.abs(differences) < _ROUNDING, 0.0, differences)
    rarer = min(int((differences <= 0).sum()), int((differences >= 0).sum()))
    return min(1.0, 2 * (rarer + 1) / (len(differences) + 1))


#: Of one model: its figure, and the same on resamples (R,), drawn alike for all models.
Sample = tuple[float, Floats | None]


def scores_of(benchmark: str, name: str, measure: str, samples: Mapping[str, Sample], items: int) -> list[Score]:
    """The score of each model on one set by one measure, with its interval if there are resamples."""
    return [
        Score(model, benchmark, name, measure, defined(value), *interval(draws), items)
        for model, (value, draws) in samples.items()
    ]


def differences_of(benchmark: str, name: str, measure: str, samples: Mapping[str, Sample], items: int) -> list[Score]:
    """What each further model has more than the first one, with interval and p-value."""
    (first, (value, draws)), *others = samples.items()
    found = []
    for model, (own, own_draws) in others:
        assert draws is not None and own_draws is not None
        between = (own_draws - draws)[np.isfinite(own_draws - draws)]
        known = math.isfinite(own - value) and len(between) > 0
        ends = interval(between) if known else (None, None)
        p = p_value(between) if known else None
        found.append(Score(model, benchmark, name, measure, defined(own - value), *ends, items, first, p))
    return found


def defined(value: float | None) -> float | None:
    """None in place of NaN."""
    return value if value is not None and math.isfinite(value) else None
