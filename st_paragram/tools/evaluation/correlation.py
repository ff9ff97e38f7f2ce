"""How well cosines of embeddings follow grades of similarity."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from st_paragram.core.encoding.models import TextEncoder, batch_size
from st_paragram.core.encoding.record import Correlation
from st_paragram.errors import EvaluationError
from st_paragram.tools.evaluation.graded_pairs import GradedPairs
from st_paragram.tools.evaluation.results import GradedResult, Interval

DECIMALS = 6  # of a cosine; what lies behind them is rounding of float32, which must not rank pairs


def embed(model: TextEncoder, texts: list[str]) -> NDArray[np.float32]:
    """Embeddings of length 1, float32 (n, D)."""
    vectors: Any = model.encode(texts, batch_size=batch_size(model), normalize_embeddings=True, show_progress_bar=False)
    return np.asarray(vectors, dtype=np.float32)


def pair_cosines(model: TextEncoder, pairs: GradedPairs) -> NDArray[np.float64]:
    """Cosine of each pair, (n,), to 6 decimals; NaN or infinite where the model gives such numbers."""
    vectors = embed(model, pairs.first + pairs.second)
    first, second = (side.astype(np.float64) for side in (vectors[: len(pairs)], vectors[len(pairs) :]))
    products: NDArray[np.float64] = np.einsum("nd,nd->n", first, second)
    return products.round(DECIMALS)


def cosines(model: TextEncoder, pairs: GradedPairs) -> NDArray[np.float64]:
    """Cosine of each pair, (n,), to 6 decimals.

    Raises:
        EvaluationError: the model gave NaN or infinite numbers; the message names the set and the first such row.
    """
    result = pair_cosines(model, pairs)
    if not np.isfinite(result).all():
        row = int(np.flatnonzero(~np.isfinite(result))[0]) + 1
        raise EvaluationError(f"{pairs.name}: the score of pair {row} is {result[row - 1]}; the model is broken")
    return result


def correlation(scores: ArrayLike, grades: ArrayLike) -> Correlation:
    """Pearson's and Spearman's correlation; equal numbers share the mean of their ranks.

    NaN, without a warning, where scores or grades are constant or not finite.
    """
    scores, grades = np.asarray(scores, np.float64), np.asarray(grades, np.float64)
    if not np.isfinite(scores).all() or np.ptp(scores) < 1e-9 or np.ptp(grades) == 0:
        return Correlation(math.nan, math.nan)
    return Correlation(_pearson(scores, grades), _pearson(_ranks(scores), _ranks(grades)))


def graded_result(
    pairs: int, found: Correlation, interval: Interval | None = None, undefined: str = ""
) -> GradedResult:
    """A correlation as a result: None where there is none.

    Args:
        pairs: that were scored.
        found: the correlation.
        interval: of Pearson's.
        undefined: why there is no correlation.
    """
    low, high = (interval.low, interval.high) if interval else (None, None)
    return GradedResult(
        pairs, _defined(found.pearson), _defined(found.spearman), _defined(low), _defined(high), undefined
    )


def correlate(model: TextEncoder, pairs: GradedPairs) -> Correlation:
    """Correlate the cosines of embeddings with the grades."""
    return correlation(cosines(model, pairs), pairs.grades)


def _pearson(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    return float(np.corrcoef(x, y)[0, 1])


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 1 on, (n,)."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(sizes) - (sizes - 1) / 2)[group]
    return ranks


def _defined(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
