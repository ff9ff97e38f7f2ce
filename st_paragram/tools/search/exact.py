"""Exact search: every query is compared with every row, by products of blocks.

Products are computed in float32 and rounded differently at different places, so they only choose candidates: some more
than are asked for, whose cosines are then computed again from what is stored (see `cosines`). Results do not depend on
parts, shards or threads. One product serves both directions of a search.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from st_paragram.tools.search.best_rows import BestRows
from st_paragram.tools.search.neighbours import Neighbours, Vectors
from st_paragram.tools.search.vectors import HeldRows, blocks

# Products are wrong by 1e-7 or so, differently for equal vectors at different places; that must not decide.
SPARE = 12
_SIDE = 2048  # rows and columns of a tile of similarities, which stays in the cache


class Rows(Protocol):
    """Vectors of length 1 that are searched, m rows of D components."""

    def __len__(self) -> int:
        """Number of rows, m."""

    @property
    def dim(self) -> int:
        """Components of a vector, D."""

    def rows(self, begin: int, end: int) -> Vectors:
        """The rows `begin` to `end`, float32 (end - begin, D)."""

    def cosines(self, queries: Vectors, rows: NDArray[np.int64]) -> Vectors:
        """Cosine of each query with the rows given for it, -1 where that is -1: float32 (n, c)."""


def exact(queries: Vectors, corpus: Rows, k: int, part_rows: int) -> Neighbours:
    """Find the k nearest rows of a corpus for each query.

    Args:
        queries: float32 (n, D), of length 1.
        corpus: m rows.
        k: At most m.
        part_rows: Rows in memory at a time.
    """
    best = BestRows(len(queries), min(k + SPARE, len(corpus)))
    for begin, end in blocks(len(corpus), part_rows):
        for row, column, tile in _tiles(queries, corpus.rows(begin, end)):
            best.see(row, tile, begin + column)
    return _nearest(best, queries, corpus, k)


def exact_both_ways(queries: Vectors, corpus: Rows, k: int, part_rows: int) -> tuple[Neighbours, Neighbours]:
    """Find the nearest rows of a corpus for each query, and the nearest queries for each row.

    Args:
        queries: float32 (n, D), of length 1.
        corpus: m rows.
        k: Neighbours wanted; all there are, if they are fewer.
        part_rows: Rows in memory at a time.

    Returns:
        Of the queries, (n, min(k, m)), and of the rows, (m, min(k, n)).
    """
    best = BestRows(len(queries), min(k + SPARE, len(corpus)))
    back = _see_both_ways(best, queries, corpus, 0, k, part_rows)
    return _nearest(best, queries, corpus, k), back


def exact_within(corpus: Rows, begin: int, end: int, k: int, part_rows: int) -> tuple[Neighbours, Neighbours]:
    """Search a corpus for its own rows `begin` to `end`; the rows before them are left out.

    Args:
        corpus: m rows.
        begin: First of the queries.
        end: Behind the last of the n queries.
        k: Neighbours wanted, a row itself among them; all there are, if they are fewer.
        part_rows: Rows in memory at a time.

    Returns:
        Of the queries among all rows from `begin` on, (n, min(k, m - begin)), and of the rows behind the queries among
        the queries, (m - end, min(k, n)).
    """
    queries = corpus.rows(begin, end)
    best = BestRows(len(queries), min(k + SPARE, len(corpus) - begin))
    for row, column, tile in _tiles(queries, queries, symmetric=True):
        best.see(row, tile, begin + column)
        if column > row:
            best.see_columns(column, tile, begin + row)
    back = _see_both_ways(best, queries, corpus, end, k, part_rows)
    return _nearest(best, queries, corpus, k), Neighbours(back.similarities, back.indices + begin)


def _see_both_ways(best: BestRows, queries: Vectors, corpus: Rows, begin: int, k: int, part_rows: int) -> Neighbours:
    """Compare queries with the rows from `begin` on; return the nearest queries of each row."""
    asked, found = HeldRows(queries), []
    for first, last in blocks(len(corpus) - begin, part_rows):
        part = corpus.rows(begin + first, begin + last)
        back = BestRows(len(part), min(k + SPARE, len(queries)))
        for row, column, tile in _tiles(queries, part):
            best.see(row, tile, begin + first + column)
            back.see_columns(column, tile, row)
        found.append(_nearest(back, part, asked, k))
    if not found:
        none = (0, min(k, len(queries)))
        return Neighbours(np.empty(none, dtype=np.float32), np.empty(none, dtype=np.int64))
    return Neighbours(
        np.concatenate([each.similarities for each in found]), np.concatenate([each.indices for each in found])
    )


def _tiles(queries: Vectors, part: Vectors, symmetric: bool = False) -> Iterator[tuple[int, int, Vectors]]:
    """Similarities of blocks of queries with blocks of rows: first query, first row, and an array that is used again.

    Args:
        queries: float32 (n, D).
        part: float32 (m, D).
        symmetric: Leave out the tiles below the diagonal.
    """
    height = min(_SIDE, len(queries))
    width = _SIDE if symmetric else _SIDE * _SIDE // height  # few queries: as large a product as otherwise
    buffer = np.empty(height * min(width, len(part)), dtype=np.float32)
    for row, end in blocks(len(queries), height):
        for column, last in blocks(len(part), width):
            if not symmetric or column >= row:
                tile = buffer[: (end - row) * (last - column)].reshape(end - row, last - column)
                yield row, column, np.matmul(queries[row:end], part[column:last].T, out=tile)


def _nearest(best: BestRows, queries: Vectors, corpus: Rows, k: int) -> Neighbours:
    """The k nearest of the candidates that were kept, as many as there are."""
    k = min(k, best.rows.shape[1])
    rows = _within_reach(best, k, corpus.dim)
    return ranked(queries, corpus, rows, k)


def _within_reach(best: BestRows, k: int, dim: int) -> NDArray[np.int64]:
    """Rows that may be among the k nearest, -1 in place of the others.

    A float32 product of unit vectors is wrong by at most dim / 2^24, however it is summed. Rows that are further
    behind the k-th than twice that need not be looked at again; twice as much is left as room.
    """
    reach = best.similarities[:, k - 1 : k] - 4 * dim / 2**24
    return np.where(best.similarities < reach, -1, best.rows)


def ranked(queries: Vectors, corpus: Rows, rows: NDArray[np.int64], k: int) -> Neighbours:
    """The k nearest of given rows, by cosines from what is stored.

    Args:
        queries: float32 (n, D), of length 1.
        corpus: The rows' vectors.
        rows: int64 (n, c), c >= k, -1 for none.
        k: To keep; places that are not filled have cosine -1 and row 0.
    """
    cosines = corpus.cosines(queries, rows)
    order = np.lexsort((rows, -cosines), axis=1)[:, :k]
    return Neighbours(np.take_along_axis(cosines, order, 1), np.maximum(np.take_along_axis(rows, order, 1), 0))
