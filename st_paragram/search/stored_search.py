"""The k nearest of stored vectors for stored queries, exactly or through an index, in bounded memory.

Whatever finds candidates, their cosines are computed again from what is stored, in float64, and the k best taken, of
equally near ones the earlier row: results do not depend on parts, shards or threads.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.search import indexes
from st_paragram.search.neighbours import SPARE, Neighbours, Vectors, import_faiss
from st_paragram.search.settings import QUERY_BLOCK
from st_paragram.search.vectors import StoredVectors, blocks

_Found = tuple[Vectors, NDArray[np.int64]]  # similarities as they were searched by, and rows
_NONE = -1.0  # cosine of a place that no candidate fills
_NUMBERS = 1 << 21  # of double precision at a time, while cosines are computed again


def rows_at_a_time(memory: int, dim: int) -> int:
    """Rows of single-precision numbers that an exact search may hold in half of the memory."""
    return max(1024, memory // 2 // (4 * dim))


def exact(queries: Vectors, corpus: StoredVectors, k: int, part_rows: int) -> Neighbours:
    """Compare every query with every row, `part_rows` rows at a time.

    Args:
        queries: float32 (n, D), of length 1.
        corpus: m rows.
        k: At most m.
        part_rows: Rows in memory at a time.
    """
    best: _Found | None = None
    for begin, end in blocks(len(corpus), part_rows):
        similarities, indices = _knn(queries, corpus.rows(begin, end), min(k + SPARE, end - begin))
        found = similarities, indices + begin
        best = found if best is None else _merged(best, found, k + SPARE)
    assert best is not None
    return ranked(queries, corpus, _within_reach(*best, k, corpus.dim), k)


def _merged(one: _Found, other: _Found, k: int) -> _Found:
    """The k best of two lists of similarities and rows, best first; of equally good ones those of the first list."""
    similarities = np.concatenate([one[0], other[0]], axis=1)
    indices = np.concatenate([one[1], other[1]], axis=1)
    order = np.argsort(-similarities, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(similarities, order, 1), np.take_along_axis(indices, order, 1)


def _within_reach(similarities: Vectors, indices: NDArray[np.int64], k: int, dim: int) -> NDArray[np.int64]:
    """Rows that may be among the k nearest, -1 in place of the others.

    A float32 product of unit vectors is wrong by at most dim / 2^24, however it is summed. Rows that are further
    behind the k-th than twice that need not be looked at again; twice as much is left as room.
    """
    reach = similarities[:, k - 1 : k] - 4 * dim / 2**24
    return np.where(similarities < reach, -1, indices)


def approximate(
    queries: Vectors, corpus: StoredVectors, parts: Iterable[tuple[int, Any]], k: int, effort: int
) -> Neighbours:
    """Search indexes of neighbouring parts of the corpus.

    Args:
        queries: float32 (n, D), of length 1; searched in blocks of `QUERY_BLOCK`.
        corpus: m rows.
        parts: For each part the row it begins at, and its index.
        k: At most m; places that are not filled have cosine -1 and row 0.
        effort: See `indexes.set_effort`.
    """
    found = []
    for begin, index in parts:
        indexes.set_effort(index, effort)
        rows = [
            indexes.search(index, queries[first:last], min(k + SPARE, index.ntotal))
            for first, last in blocks(len(queries), QUERY_BLOCK)
        ]
        found.append(_shifted(np.concatenate(rows), begin))
    return ranked(queries, corpus, np.concatenate(found, axis=1), k)


def ranked(queries: Vectors, corpus: StoredVectors, indices: NDArray[np.int64], k: int) -> Neighbours:
    """The k nearest of given rows, by cosines from what is stored; rows of -1 count as none.

    Args:
        queries: float32 (n, D), of length 1.
        corpus: The rows' vectors.
        indices: int64 (n, c), c >= k.
        k: To keep.
    """
    indices = np.take_along_axis(indices, np.argsort(indices < 0, axis=1, kind="stable"), 1)
    counts = (indices >= 0).sum(axis=1)
    indices = indices[:, : max(k, counts.max(initial=0))]
    cosines = np.full(indices.shape, _NONE, dtype=np.float32)
    for count in np.unique(counts[counts > 0]).tolist():
        same = np.flatnonzero(counts == count)
        for first, last in blocks(len(same), max(1, _NUMBERS // (count * corpus.dim))):
            chosen = same[first:last]
            cosines[chosen, :count] = _cosines(queries[chosen], corpus, indices[chosen, :count])
    order = np.lexsort((indices, -cosines), axis=1)[:, :k]
    taken = np.maximum(np.take_along_axis(indices, order, 1), 0)
    return Neighbours(np.take_along_axis(cosines, order, 1), taken)


def _cosines(queries: Vectors, corpus: StoredVectors, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Cosine of each query with the rows given for it, float64 (n, c)."""
    distinct, where = np.unique(rows, return_inverse=True)
    vectors = corpus.take(distinct).astype(np.float64)
    near: NDArray[np.float64] = np.einsum("nd,nkd->nk", queries.astype(np.float64), vectors[where.reshape(rows.shape)])
    return near


def without_self(neighbours: Neighbours, rows: NDArray[np.int64], k: int) -> Neighbours:
    """Leave each query out of its own neighbours, where queries are rows of the corpus.

    Args:
        neighbours: k + 1 of each of n queries.
        rows: Of the queries, int64 (n,).
        k: To keep.
    """
    order = np.argsort(neighbours.indices == rows[:, None], axis=1, kind="stable")[:, :k]  # its own row goes last
    return Neighbours(
        np.take_along_axis(neighbours.similarities, order, 1), np.take_along_axis(neighbours.indices, order, 1)
    )


def _knn(queries: Vectors, part: Vectors, k: int) -> _Found:
    """Similarities and rows of the k nearest, (n, k) each, best first."""
    faiss = import_faiss()
    if hasattr(faiss, "StandardGpuResources") and faiss.get_num_gpus():
        resources = faiss.StandardGpuResources()
        found = faiss.knn_gpu(resources, queries, part, k, metric=faiss.METRIC_INNER_PRODUCT)
    else:
        found = faiss.knn(queries, part, k, metric=faiss.METRIC_INNER_PRODUCT)
    similarities, indices = found
    return similarities, np.asarray(indices, dtype=np.int64)


def _shifted(indices: NDArray[np.int64], begin: int) -> NDArray[np.int64]:
    """Rows of a part as rows of the whole; -1 stays what it is."""
    return np.where(indices < 0, -1, indices + begin)
