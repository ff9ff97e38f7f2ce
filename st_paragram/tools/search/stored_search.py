"""The k nearest of stored vectors for stored queries through an index, in bounded memory.

The index finds candidates. Their cosines are computed again from what is stored, and the k best taken, of equally near
ones the earlier row: what is found depends on the index, but no cosine does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.tools.search import indexes
from st_paragram.tools.search.exact import ranked
from st_paragram.tools.search.neighbours import Neighbours, Vectors
from st_paragram.tools.search.settings import QUERY_BLOCK
from st_paragram.tools.search.vectors import Rows, blocks

_SPARE = 28  # candidates beyond k: codes of a few bits order them roughly


def rows_at_a_time(memory: int, dim: int) -> int:
    """Rows of single-precision numbers that an exact search may hold in half of the memory."""
    return max(1024, memory // 2 // (4 * dim))


def approximate(
    queries: Vectors,
    corpus: Rows,
    parts: Iterable[tuple[int, Any]],
    k: int,
    effort: int,
    allowed: NDArray[np.bool_] | None = None,
    wanted: int = 0,
) -> Neighbours:
    """Search indexes of neighboring parts of the corpus.

    Args:
        queries: float32 (n, D), of length 1; searched in blocks of `QUERY_BLOCK`.
        corpus: m rows.
        parts: For each part the row it begins at, and its index.
        k: At most m; places that are not filled have cosine -1 and row 0.
        effort: See `indexes.set_effort`.
        allowed: Which rows may be found, (m,); None: all.
        wanted: Neighbors that an index is asked for, if that is more than k: some may not be allowed.
    """
    found = []
    for begin, index in parts:
        indexes.set_effort(index, effort)
        rows = [
            indexes.search(index, queries[first:last], min(max(k, wanted) + _SPARE, index.ntotal))
            for first, last in blocks(len(queries), QUERY_BLOCK)
        ]
        found.append(_shifted(np.concatenate(rows), begin))
    candidates = np.concatenate(found, axis=1)
    if allowed is not None:
        candidates = np.where(allowed[candidates], candidates, -1)  # -1 stays what it is
    return ranked(queries, corpus, candidates, k)


def without_self(neighbours: Neighbours, rows: NDArray[np.int64], k: int) -> Neighbours:
    """Leave each query out of its own neighbors, where queries are rows of the corpus.

    Args:
        neighbours: k + 1 of each of n queries.
        rows: Of the queries, int64 (n,).
        k: To keep.
    """
    order = np.argsort(neighbours.indices == rows[:, None], axis=1, kind="stable")[:, :k]  # its own row goes last
    return Neighbours(
        np.take_along_axis(neighbours.similarities, order, 1), np.take_along_axis(neighbours.indices, order, 1)
    )


def _shifted(indices: NDArray[np.int64], begin: int) -> NDArray[np.int64]:
    """Rows of a part as rows of the whole; -1 stays what it is."""
    return np.where(indices < 0, -1, indices + begin)
