"""Scores, the rows that all benchmarks yield, and the similarities that they are computed from."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from st_paragram.core.arrays import Floats, Integers
from st_paragram.core.encoding.models import TextEncoder, batch_size
from st_paragram.core.encoding.unit_embeddings import unit_embeddings
from st_paragram.core.files import read_json, write_json
from st_paragram.core.formatting import counted
from st_paragram.core.model_directory.record import Correlation
from st_paragram.errors import EvaluationError, refused, short
from st_paragram.tools.bitext_mining.candidates import best_neighbors
from st_paragram.tools.bitext_mining.margin import Margin
from st_paragram.tools.evaluation.files import GradedPairs, Translations
from st_paragram.tools.neighbors.exact import nearest_both_ways
from st_paragram.tools.neighbors.results import Vectors

logger = logging.getLogger(__name__)

DECIMALS = 6  # of a cosine; later digits are float32 rounding errors, which must not rank pairs
_CONSTANT = 1e-20  # sum of squares at or below which values are constant


@dataclass(frozen=True)
class Score:
    """One figure of one model."""

    model: str  # name as given by the user
    benchmark: str  # such as "sts"
    set: str  # a data set or a mean over several, such as "2012/MSRpar" or "average"
    measure: str  # such as "Pearson" or "error"
    # a share in 0 .. 1, or a correlation in -1 .. 1; None if undefined (constant cosines)
    value: float | None = None
    items: int = 0  # number of scored pairs, queries or sentences
    untranslated: int = 0  # queries that were left out because they have no translation
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
    rows = []
    for score in scores:
        row = asdict(score)
        del row["draws"]
        rows.append(row)
    write_json(Path(path), rows)


def read_scores(path: str | Path) -> list[Score]:
    """Read scores from a file that `write_scores` wrote."""
    advice = "create it with `st-paragram evaluate --json`"
    with refused(EvaluationError, path, "not a list of scores", advice):
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
    vectors, known = unit_embeddings(
        model, texts, method, batch_size=batch_size(model), normalize_embeddings=True
    )
    if not known.all():
        count = len(known) - int(known.sum())
        logger.warning(
            f"{count:,} of {counted(len(known), 'text')}: empty, or the model knows no token; they"
            " have no similarity"
        )
    return vectors


def cosines(model: TextEncoder, pairs: GradedPairs | Translations) -> Floats:
    """Return the cosine of each pair, (n,), rounded to 6 decimals."""
    vectors = embed(model, pairs.first + pairs.second).astype(np.float64)
    first = vectors[: len(pairs)]
    second = vectors[len(pairs) :]
    return np.einsum("nd,nd->n", first, second).round(DECIMALS)


def nearest_both_ways_of_known(
    first: Vectors, second: Vectors, k: int, margin: Margin = Margin.ABSOLUTE
) -> tuple[Integers, Integers]:
    """Find the best by a margin of the k nearest neighbors on the other side, for both sides.

    Args:
        first: Vectors of length 1, float32 (n, D), or zeros, which have and are no neighbors.
        second: The same for the other side, (m, D).
        k: Number of neighbors.
        margin: How neighbors are compared; by default by cosine.

    Returns:
        Rows of `second`, int64 (n,), and rows of `first`, (m,); -1 for none.
    """
    first_rows = np.flatnonzero(first.any(axis=1))
    second_rows = np.flatnonzero(second.any(axis=1))
    to_second = np.full(len(first), -1)
    to_first = np.full(len(second), -1)
    if len(first_rows) and len(second_rows):
        forward, backward = nearest_both_ways(first[first_rows], second[second_rows], k)
        to_second[first_rows] = second_rows[best_neighbors(forward, backward, margin)[0]]
        to_first[second_rows] = first_rows[best_neighbors(backward, forward, margin)[0]]
    return to_second, to_first


def correlation(scores: ArrayLike, grades: ArrayLike) -> Correlation:
    """Return Pearson's and Spearman's correlation.

    They are NaN if scores or grades are constant, or for a single pair.
    """
    x = np.asarray(scores, np.float64)
    y = np.asarray(grades, np.float64)
    if len(x) < 2:
        return Correlation(math.nan, math.nan)
    return Correlation(float(pearson(x, y)), float(pearson(ranks(x), ranks(y))))


def pearson(x: Floats, y: Floats) -> Floats:
    """Return Pearson's correlation along the last axis; NaN where either side is constant."""
    x = x - x.mean(axis=-1, keepdims=True)
    y = y - y.mean(axis=-1, keepdims=True)
    products = np.einsum("...n,...n", x, y)
    x_squares = np.einsum("...n,...n", x, x)
    y_squares = np.einsum("...n,...n", y, y)
    is_constant = (x_squares <= _CONSTANT) | (y_squares <= _CONSTANT)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(is_constant, math.nan, products / np.sqrt(x_squares * y_squares))


def ranks(values: Floats) -> Floats:
    """Return ranks from 1 along the last axis; equal values share their mean rank."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(values, axis=-1))
