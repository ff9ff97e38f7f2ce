"""Exact nearest neighbors of vectors in memory."""

from __future__ import annotations

import numpy as np

from st_paragram.errors import EvaluationError, SettingsError
from st_paragram.tools.search.exact import exact, exact_both_ways
from st_paragram.tools.search.neighbours import Neighbours, Vectors
from st_paragram.tools.search.vectors import HeldRows

# Squared lengths of embeddings normalized in float32, or in float16 and back, stay well within this of 1.
_LENGTH_TOLERANCE = 0.01


def nearest_neighbours(queries: Vectors, corpus: Vectors, k: int) -> Neighbours:
    """Compare every query with every row of the corpus.

    The cosines of what was found are computed again in float64 and rounded once, so that they are the same in both
    directions and for equal vectors, wherever these are. Runs on as many threads as `OMP_NUM_THREADS` says.

    Args:
        queries: float32 (n, D), rows of length 1.
        corpus: float32 (m, D), rows of length 1.
        k: Neighbors wanted for each query, 1 .. m.

    Raises:
        EvaluationError: Either side is empty, holds NaN or infinite numbers or rows of another length than 1, or
            their dimensions differ.
        SettingsError: k is outside 1 .. m.
    """
    queries, corpus = _sides(queries, corpus)
    _check(k, corpus)
    return exact(queries, HeldRows(corpus), k, len(corpus))


def nearest_both_ways(source: Vectors, target: Vectors, k: int) -> tuple[Neighbours, Neighbours]:
    """The k nearest target rows of every source row, and the reverse: what two searches find, from one product.

    Args:
        source: float32 (n, D), rows of length 1.
        target: float32 (m, D), rows of length 1.
        k: Neighbors wanted, at least 1; all there are where they are fewer.

    Raises:
        EvaluationError, SettingsError: As `nearest_neighbours`.
    """
    source, target = _sides(source, target)
    _check(min(k, len(source), len(target)), target)
    return exact_both_ways(source, HeldRows(target), k, len(target))


def _sides(queries: Vectors, corpus: Vectors) -> tuple[Vectors, Vectors]:
    queries, corpus = _checked(queries, "queries"), _checked(corpus, "corpus")
    if queries.shape[1] != corpus.shape[1]:
        seen = f"queries have {queries.shape[1]} components, the corpus has {corpus.shape[1]}"
        raise EvaluationError(f"{seen}; embed both with one model")
    return queries, corpus


def _check(k: int, corpus: Vectors) -> None:
    if not 1 <= k <= len(corpus):
        raise SettingsError(
            f"{k} neighbors requested in a corpus of {len(corpus)} sentences; give a number from 1 to its size"
        )


def _checked(vectors: Vectors, name: str) -> Vectors:
    if vectors.ndim != 2 or 0 in vectors.shape:
        raise EvaluationError(f"{name}: vectors of shape {vectors.shape}; give one vector per row, at least one")
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    squares = np.einsum("nd,nd->n", vectors, vectors)
    bad = np.flatnonzero(~(np.abs(squares - 1) < _LENGTH_TOLERANCE))  # NaN fails the comparison
    if len(bad):
        seen = f"vector {bad[0] + 1} of {len(vectors)} has length {float(squares[bad[0]]) ** 0.5:.4g}"
        raise EvaluationError(f"{name}: {seen}, not 1; normalize the embeddings, or train another model if it is nan")
    return vectors
