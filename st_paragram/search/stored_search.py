"""The k nearest of stored vectors for stored queries, exactly or through an index, in bounded memory.

Whatever finds candidates, their cosines are computed again from what is stored, in float64, and the k best taken, of
equally near ones the earlier row: results do not depend on parts, shards or threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.search import indexes
from st_paragram.search.neighbours import SPARE, Neighbours, Vectors, import_faiss
from st_paragram.search.settings import QUERY_BLOCK
from st_paragram.search.vectors import StoredVectors, blocks

_NONE = -1.0  # cosine of a place that no candidate fills


def rows_at_a_time(memory: int, dim: int) -> int:
    """Rows of single-precision numbers that an exact search may hold in half of the memory."""
    return max(1024, memory // 2 // (4 * dim))


def exact(queries: Vectors, corpus: StoredVectors, k: int, part_rows: int) -> Neighbours:
    """Compare every query with every row, `part_rows` rows at a time.

    Args:
        queries: float32 (n, D), of length 1.
        corpus: m rows.
        k: at most m.
        part_rows: rows in memory at a time.
    """
    found: NDArray[np.int64] | None = None
    for begin, end in blocks(len(corpus), part_rows):
        part = corpus.rows(begin, end)
        indices = _shifted(_knn(queries, part, min(k + SPARE, end - begin)), begin)
        found = indices if found is None else np.concatenate([found, indices], axis=1)
        if found.shape[1] > 4 * (k + SPARE):  # keep what there is small
            found = ranked(queries, corpus, found, k + SPARE).indices
    assert found is not None
    return ranked(queries, corpus, found, k)


def approximate(
    queries: Vectors, corpus: StoredVectors, parts: Iterable[tuple[int, Any]], k: int, effort: int
) -> Neighbours:
    """Search indexes of neighbouring parts of the corpus.

    Args:
        queries: float32 (n, D), of length 1; searched in blocks of `QUERY_BLOCK`.
        corpus: m rows.
        parts: for each part the row it begins at, and its index.
        k: at most m; places that are not filled have cosine -1 and row 0.
        effort: see `indexes.set_effort`.
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
        corpus: the rows' vectors.
        indices: int64 (n, c), c >= k.
        k: to keep.
    """
    cosines = np.empty(indices.shape, dtype=np.float32)
    for first, last in _row_blocks(len(queries), indices.shape[1] * corpus.dim):
        rows = indices[first:last]
        distinct, where = np.unique(rows, return_inverse=True)
        vectors = corpus.take(np.maximum(distinct, 0)).astype(np.float64)
        near = np.einsum("nd,nkd->nk", queries[first:last].astype(np.float64), vectors[where.reshape(rows.shape)])
        cosines[first:last] = np.where(rows < 0, _NONE, near)
    order = np.lexsort((indices, -cosines), axis=1)[:, :k]
    taken = np.maximum(np.take_along_axis(indices, order, 1), 0)
    return Neighbours(np.take_along_axis(cosines, order, 1), taken)


def without_self(neighbours: Neighbours, rows: NDArray[np.int64], k: int) -> Neighbours:
    """Leave each query out of its own neighbours, where queries are rows of the corpus.

    Args:
        neighbours: k + 1 of each of n queries.
        rows: of the queries, int64 (n,).
        k: to keep.
    """
    order = np.argsort(neighbours.indices == rows[:, None], axis=1, kind="stable")[:, :k]  # its own row goes last
    return Neighbours(
        np.take_along_axis(neighbours.similarities, order, 1), np.take_along_axis(neighbours.indices, order, 1)
    )


def _knn(queries: Vectors, part: Vectors, k: int) -> NDArray[np.int64]:
    faiss = import_faiss()
    if hasattr(faiss, "StandardGpuResources") and faiss.get_num_gpus():
        _, indices = faiss.knn_gpu(faiss.StandardGpuResources(), queries, part, k, metric=faiss.METRIC_INNER_PRODUCT)
    else:
        _, indices = faiss.knn(queries, part, k, metric=faiss.METRIC_INNER_PRODUCT)
    return np.asarray(indices, dtype=np.int64)


def _shifted(indices: NDArray[np.int64], begin: int) -> NDArray[np.int64]:
    """Rows of a part as rows of the whole; -1 stays what it is."""
    return np.where(indices < 0, -1, indices + begin)


def _row_blocks(count: int, width: int) -> Iterator[tuple[int, int]]:
    """Blocks of rows whose float64 numbers, `width` a row, take some 128 MB."""
    return blocks(count, max(1, (1 << 24) // width))
