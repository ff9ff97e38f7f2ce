"""Exact nearest neighbours by cosine."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from st_paragram.errors import EvaluationError, SettingsError
from st_paragram.extras import require

Vectors = NDArray[np.float32]

# Squared lengths of embeddings normalised in float32, or in float16 and back, stay well within this of 1.
_LENGTH_TOLERANCE = 0.01
# The search rounds to 1e-7 or so, differently for equal vectors at different places; it must not decide between them.
SPARE = 12
_BLOCK_BYTES = 64 << 20


@dataclass(frozen=True)
class Neighbours:
    """The k nearest rows of a corpus for each of n queries, nearest first; of equally near ones the earlier row.

    Args:
        similarities: Cosines, float32 (n, k).
        indices: Rows of the corpus, int64 (n, k).
    """

    similarities: Vectors
    indices: NDArray[np.int64]

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean cosine of each query with its k neighbours, (n,)."""
        return self.similarities.mean(axis=1, dtype=np.float64)

    def nearest(self, k: int) -> Neighbours:
        """The first `k` columns."""
        return Neighbours(self.similarities[:, :k], self.indices[:, :k])


def nearest_neighbours(queries: Vectors, corpus: Vectors, k: int) -> Neighbours:
    """Compare every query with every row of the corpus (faiss, inner product, no copy of the corpus).

    The cosines of what was found are computed again in float64 and rounded once, so that they are the same in both
    directions and for equal vectors, wherever these stand. Runs on as many threads as torch does
    (`torch.set_num_threads`, `OMP_NUM_THREADS`).

    Args:
        queries: float32 (n, D), rows of length 1.
        corpus: float32 (m, D), rows of length 1.
        k: Neighbours wanted for each query, 1 .. m.

    Raises:
        EvaluationError: Either side is empty, holds NaN or infinite numbers or rows of another length than 1, or
            their dimensions differ.
        SettingsError: k is outside 1 .. m.
        MissingExtraError: faiss is not installed.
    """
    queries, corpus = _checked(queries, "queries"), _checked(corpus, "corpus")
    if queries.shape[1] != corpus.shape[1]:
        seen = f"queries have {queries.shape[1]} components, the corpus has {corpus.shape[1]}"
        raise EvaluationError(f"{seen}; embed both with one model")
    if not 1 <= k <= len(corpus):
        raise SettingsError(f"{k} neighbours asked for in a corpus of {len(corpus)} sentences; ask for 1 .. its size")
    indices = _search(queries, corpus, min(k + SPARE, len(corpus)))
    similarities = cosines(queries, corpus, indices)
    order = np.lexsort((indices, -similarities), axis=1)[:, :k]
    return Neighbours(np.take_along_axis(similarities, order, 1), np.take_along_axis(indices, order, 1))


def _checked(vectors: Vectors, name: str) -> Vectors:
    if vectors.ndim != 2 or 0 in vectors.shape:
        raise EvaluationError(f"{name}: vectors of shape {vectors.shape}; one vector a row is needed, at least one")
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    squares = np.einsum("nd,nd->n", vectors, vectors)
    bad = np.flatnonzero(~(np.abs(squares - 1) < _LENGTH_TOLERANCE))  # NaN fails the comparison
    if len(bad):
        seen = f"vector {bad[0] + 1} of {len(vectors)} has length {float(squares[bad[0]]) ** 0.5:.4g}"
        raise EvaluationError(f"{name}: {seen}, not 1; normalise the embeddings, or mend the model if it is nan")
    return vectors


def cosines(queries: Vectors, corpus: Vectors, indices: NDArray[np.int64]) -> Vectors:
    """Cosine of each query with the rows given for it, float32 (n, k)."""
    result = np.empty(indices.shape, dtype=np.float32)
    step = max(1, _BLOCK_BYTES // (8 * indices.shape[1] * corpus.shape[1]))
    for start in range(0, len(queries), step):
        rows = slice(start, start + step)
        found = corpus[indices[rows]].astype(np.float64)
        result[rows] = np.einsum("nd,nkd->nk", queries[rows].astype(np.float64), found)
    return result


def _search(queries: Vectors, corpus: Vectors, k: int) -> NDArray[np.int64]:
    import torch

    faiss = import_faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(torch.get_num_threads())
    try:
        # What IndexFlatIP computes, on the caller's array.
        _, indices = faiss.knn(queries, corpus, k, metric=faiss.METRIC_INNER_PRODUCT)
    finally:
        faiss.omp_set_num_threads(before)
    return indices


def import_faiss() -> ModuleType:
    """The module faiss.

    Raises:
        MissingExtraError: It is not installed.
    """
    return require("faiss", "mining", "a search for neighbours")
