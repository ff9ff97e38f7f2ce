"""Scores: the row type of all benchmarks, embeddings, correlations, and bootstrap intervals.

Efron & Tibshirani (1993), An Introduction to the Bootstrap, chapters 13 and 16. Koehn (2004),
Statistical Significance Tests for Machine Translation Evaluation, compares two systems on the same
resamples.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from st_paragram.core.encoding.models import TextEncoder, batch_size
from st_paragram.core.encoding.unit_embeddings import unit_embeddings
from st_paragram.core.files import read_json, write_json
from st_paragram.core.formatting import counted
from st_paragram.core.model_directory.record import Correlation
from st_paragram.errors import EvaluationError, refused, short
from st_paragram.tools.bitext_mining.candidates import best_neighbors
from st_paragram.tools.bitext_mining.margin import Margin
from st_paragram.tools.evaluation.files import GradedPairs
from st_paragram.tools.neighbors.exact import nearest_both_ways
from st_paragram.tools.neighbors.results import Vectors

logger = logging.getLogger(__name__)

DECIMALS = 6  # of a cosine; later digits are float32 rounding errors, which must not rank pairs
RESAMPLES = 10_000
_FEWEST, _DRAWS = 1000, 20_000_000  # minimum number of resamples; items to draw in total
_BATCH = 250_000  # items drawn at a time
_ROUNDING = 1e-12  # smaller differences count as 0, so that two equal systems do not differ

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Score:
    """One figure of one model."""

    model: str  # name as given by the user
    benchmark: str  # such as "sts"
    set: str  # a data set or a mean over several, such as "2012/MSRpar" or "average"
    measure: str  # such as "Pearson" or "error"
    # a share in 0 .. 1, or a correlation in -1 .. 1; None if undefined (constant cosines)
    value: float | None
    items: int = 0  # number of scored pairs, queries or sentences
    low: float | None = None  # lower end of the 95% interval
    high: float | None = None
    against: str = ""  # the model that this model is compared with; `value` is then the difference
    p_value: float | None = None  # two-sided, for the hypothesis of no difference
    # of the scored model, see `model_files.model_digest`; empty if it is not in a folder
    digest: str = ""
    # values on resamples, (R,); not written
    draws: Floats | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Replace NaN with None."""
        if self.value is not None and not math.isfinite(self.value):
            object.__setattr__(self, "value", None)


def write_scores(scores: Iterable[Score], path: str | Path) -> None:
    """Write scores atomically, as a JSON list of objects."""
    rows = [asdict(score) for score in scores]
    write_json(
        Path(path),
        [{name: value for name, value in row.items() if name != "draws"} for row in rows],
    )


def read_scores(path: str | Path) -> list[Score]:
    """Read scores from a file that `write_scores` wrote."""
    with refused(
        EvaluationError,
        path,
        "not a list of scores",
        "create it with `st-paragram evaluate --json`",
    ):
        rows = read_json(path)
        if not isinstance(rows, list):
            raise TypeError(f"it is {short(rows)}")
        for number, row in enumerate(rows, 1):
            _check_row(number, row)
        return [Score(**row) for row in rows]


def _check_row(number: int, row: Mapping[str, Any]) -> None:
    """Refuse a row of a file whose names are not text, or whose value is not a finite number."""
    for name in ("model", "benchmark", "set", "measure", "against", "digest"):
        if not isinstance(row.get(name, ""), str):
            raise TypeError(f"row {number}: {name} is {short(row[name])}")
    value = row["value"]
    if value is not None and (isinstance(value, bool) or not math.isfinite(value)):
        raise ValueError(f"row {number}: value is {value}")


def embed(model: TextEncoder, texts: Sequence[str], method: str = "encode") -> Vectors:
    """Return embeddings of length 1, float32 (n, D), from a method of the model.

    A text without a known token has no similarity: its embedding is zeros. The number of such texts
    is logged.
    """
    options = {"batch_size": batch_size(model), "normalize_embeddings": True}
    vectors, known = unit_embeddings(model, texts, method, **options)
    if not known.all():
        count = len(known) - int(known.sum())
        logger.warning(
            f"{count:,} of {counted(len(known), 'text')}: empty, or the model knows no token; they"
            " have no similarity"
        )
    return vectors


def cosines(model: TextEncoder, pairs: GradedPairs) -> Floats:
    """Return the cosine of each pair, (n,), rounded to 6 decimals."""
    vectors = embed(model, pairs.first + pairs.second).astype(np.float64)
    return np.einsum("nd,nd->n", vectors[: len(pairs)], vectors[len(pairs) :]).round(DECIMALS)


def nearest_both_ways_of_known(
    first: Vectors, second: Vectors, k: int, margins: Sequence[Margin] = (Margin.ABSOLUTE,)
) -> list[tuple[Rows, Rows]]:
    """Find the best of the k nearest neighbors by each margin, for rows of both sides, float32 (n,
    D) and (m, D).

    Rows have length 1, or are zeros, which have no neighbors and are not neighbors.

    Returns:
        For each margin, rows of `second`, int64 (n,), and rows of `first`, (m,); -1 for none.
    """
    firsts = np.flatnonzero(first.any(axis=1))
    seconds = np.flatnonzero(second.any(axis=1))
    if not (len(firsts) and len(seconds)):
        return [(np.full(len(first), -1), np.full(len(second), -1)) for _ in margins]
    forward, backward = nearest_both_ways(first[firsts], second[seconds], k)
    results = []
    for margin in margins:
        ahead = np.full(len(first), -1)
        ahead[firsts] = seconds[best_neighbors(forward, backward, margin)[0]]
        back = np.full(len(second), -1)
        back[seconds] = firsts[best_neighbors(backward, forward, margin)[0]]
        results.append((ahead, back))
    return results


def correlation(scores: ArrayLike, grades: ArrayLike) -> Correlation:
    """Return Pearson's and Spearman's correlation; NaN if scores or grades are constant, or for a
    single pair.
    """
    x, y = np.asarray(scores, np.float64), np.asarray(grades, np.float64)
    if len(x) < 2:
        return Correlation(math.nan, math.nan)
    return Correlation(float(pearson(x, y)), float(pearson(ranks(x), ranks(y))))


def pearson(x: Floats, y: Floats) -> Floats:
    """Return Pearson's correlation along the last axis; NaN where either side is constant."""
    x, y = (side - side.mean(axis=-1, keepdims=True) for side in (x, y))
    squares = [np.einsum("...n,...n", side, side) for side in (x, y)]
    constant = (squares[0] <= 1e-20) | (squares[1] <= 1e-20)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(
            constant, math.nan, np.einsum("...n,...n", x, y) / np.sqrt(squares[0] * squares[1])
        )


def ranks(values: Floats) -> Floats:
    """Return ranks from 1 along the last axis; equal values share their mean rank."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(values, axis=-1))


def resampled(
    statistic: Callable[[NDArray[np.int64]], Floats], items: int, seed: int | tuple[int, ...] = 0
) -> Floats:
    """Return a statistic of all n items, followed by the same statistic of R resamples, float64 (1
    + R,).

    R is 10,000, or less for more than 2,000 items, but at least 1,000. The statistic takes rows of
    items, int64 (b, n), and returns b figures. The same seed draws the same items, so that models
    can be compared. A single item has no resamples: their figures are NaN.
    """
    from scipy.stats import bootstrap

    whole = statistic(np.arange(items)[None])
    if items < 2:
        return np.concatenate([whole, np.full(RESAMPLES, math.nan)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # resamples whose correlation is undefined
        result = bootstrap(
            (np.arange(items),),
            lambda rows, axis: statistic(rows.reshape(-1, items)),
            n_resamples=min(RESAMPLES, max(_FEWEST, _DRAWS // items)),
            batch=max(1, _BATCH // items),
            vectorized=True,
            method="percentile",
            rng=np.random.default_rng(seed),
        )
    return np.concatenate([whole, result.bootstrap_distribution])


def resampled_pearson(
    scores: Floats,
    grades: Floats,
    seed: int | tuple[int, ...] = 0,
    form: Callable[[Floats], Floats] = np.asarray,
) -> Floats:
    """Return Pearson's correlation as in `resampled`, or Spearman's if `form` is `ranks`."""
    return resampled(
        lambda rows: pearson(form(scores[rows]), form(grades[rows])), len(grades), seed
    )


def score_of(
    model: str, benchmark: str, name: str, measure: str, figures: Floats, items: int
) -> Score:
    """Return the score and its interval for figures from `resampled`, (1 + R,)."""
    low, high = interval(figures[1:])
    return Score(
        model, benchmark, name, measure, float(figures[0]), items, low, high, draws=figures[1:]
    )


def interval(draws: Floats) -> tuple[float | None, float | None]:
    """Return the ends of the 95% percentile interval; undefined resamples are ignored."""
    if not np.isfinite(draws).any():
        return None, None
    low, high = np.nanquantile(draws, [0.025, 0.975])
    return float(low), float(high)


def differences(scores: Iterable[Score]) -> Iterator[Score]:
    """Yield the differences of further models from the first, with interval and p-value, for scores
    with resamples.
    """
    firsts: dict[tuple[str, str, str], Score] = {}
    for score in scores:
        first = firsts.setdefault((score.benchmark, score.set, score.measure), score)
        if first is score or first.draws is None or score.draws is None:
            continue
        between = score.draws - first.draws
        between = between[np.isfinite(between)]
        compared = replace(score, value=None, low=None, high=None, against=first.model, draws=None)
        if score.value is not None and first.value is not None:
            compared = replace(compared, value=score.value - first.value)
            if len(between):
                low, high = interval(between)
                compared = replace(compared, low=low, high=high, p_value=p_value(between))
        yield compared


def p_value(differences: Floats) -> float:
    """Return twice the share of resamples on the rarer side of 0; it is never 0, since 1 is added
    to both counts.
    """
    differences = np.where(np.abs(differences) < _ROUNDING, 0.0, differences)
    rarer = min(int((differences <= 0).sum()), int((differences >= 0).sum()))
    return min(1.0, 2 * (rarer + 1) / (len(differences) + 1))
