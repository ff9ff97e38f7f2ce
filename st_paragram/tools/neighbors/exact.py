"""Exact search: every query is compared with every row, by products of blocks.

Products are computed in float32 with rounding that depends on positions, so they only select
candidates, more than needed. Their cosines are then computed again from the stored vectors
(`Rows.cosines`). So results do not depend on blocks, shards or threads. One product is used for
both directions of a search.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.native import kernels, usable_threads
from st_paragram.errors import EvaluationError, SettingsError
from st_paragram.tools.neighbors.results import Neighbors, Vectors, joined
from st_paragram.tools.neighbors.vectors import Rows, UnitRows, blocks

# Products have errors of about 1e-7, which differ for equal vectors at different positions and must
# not matter. If more rows than these are equally near, rounding decides which of them are kept.
SPARE = 12
_SIDE = 2048  # rows and columns of a tile of similarities, which fits in the cache
_NUMBERS = 1 << 23  # numbers of the corpus in memory at a time
# Squared lengths of embeddings normalized in float32, or in float16 and back, differ from 1 by much
# less than this.
_LENGTH_TOLERANCE = 0.01


def nearest_neighbors(queries: Vectors, corpus: Vectors, k: int) -> Neighbors:
    """Find the k nearest rows of a corpus for each query.

    Args:
        queries: Unit vectors, float32 (n, D).
        corpus: Unit vectors, float32 (m, D).
        k: Number of rows, 1 to m.

    `OMP_NUM_THREADS` sets the number of threads.
    """
    queries, corpus = _checked(queries, corpus, k)
    return exact(queries, UnitRows(corpus), k)


def nearest_both_ways(source: Vectors, target: Vectors, k: int) -> tuple[Neighbors, Neighbors]:
    """Find the k nearest target rows, (m, D), for every source row, (n, D), and vice versa.

    The result equals that of two searches, but needs only one product. There may be fewer than k
    rows.
    """
    source, target = _checked(source, target, min(k, len(source), len(target)))
    return exact_both_ways(source, UnitRows(target), k)


def _checked(queries: Vectors, corpus: Vectors, k: int) -> tuple[Vectors, Vectors]:
    queries = _checked_vectors("queries", queries)
    corpus = _checked_vectors("corpus", corpus)
    if queries.shape[1] != corpus.shape[1]:
        raise EvaluationError(
            f"queries have {queries.shape[1]} dimensions, the corpus has {corpus.shape[1]}; embed"
            " both with the same model"
        )
    if not 1 <= k <= len(corpus):
        raise SettingsError(
            f"{k} neighbors requested in a corpus of {len(corpus):,} sentences; give a number from"
            " 1 to its size"
        )
    return queries, corpus


def _checked_vectors(name: str, vectors: Vectors) -> Vectors:
    if vectors.ndim != 2 or 0 in vectors.shape:
        raise EvaluationError(
            f"{name}: vectors of shape {vectors.shape}; give one vector per row, at least one"
        )
    squares = np.einsum("nd,nd->n", vectors, vectors)
    bad = np.flatnonzero(~(np.abs(squares - 1) < _LENGTH_TOLERANCE))  # NaN fails the comparison
    if len(bad):
        raise EvaluationError(
            f"{name}: vector {bad[0] + 1} of {len(vectors)} has length"
            f" {float(squares[bad[0]]) ** 0.5:.4g}, not 1; normalize the embeddings, or train"
            " another model if it is nan"
        )
    return np.ascontiguousarray(vectors, np.float32)


def exact(queries: Vectors, corpus: Rows, k: int) -> Neighbors:
    """Find the k nearest rows of a corpus, or all if there are fewer, for each query, (n, D)."""
    best = BestRows(len(queries), min(k + SPARE, len(corpus)))
    for begin, part in _parts(corpus, 0):
        for row, column, tile in _tiles(queries, part):
            best.see(row, tile, begin + column)
    return _nearest(best, queries, corpus, k)


def exact_both_ways(queries: Vectors, corpus: Rows, k: int) -> tuple[Neighbors, Neighbors]:
    """Find the nearest of m rows for each query, (n, D), and the nearest queries for each row.

    Returns:
        Neighbors of the queries, (n, min(k, m)), and of the rows, (m, min(k, n)).
    """
    best = BestRows(len(queries), min(k + SPARE, len(corpus)))
    back = _see_both_ways(best, queries, corpus, 0, k)
    return _nearest(best, queries, corpus, k), back


def exact_within(corpus: Rows, begin: int, end: int, k: int) -> tuple[Neighbors, Neighbors]:
    """Search a corpus for its own rows `begin` to `end`; the rows before them are left out.

    Args:
        corpus: m rows.
        begin: First query.
        end: End of the n queries.
        k: Number of neighbors, including a row itself; all if there are fewer.

    Returns:
        Neighbors of the queries among all rows from `begin` on, (n, min(k, m - begin)), and of the
        rows after the queries among the queries, (m - end, min(k, n)).
    """
    queries = corpus.rows(begin, end)
    best = BestRows(len(queries), min(k + SPARE, len(corpus) - begin))
    for row, column, tile in _tiles(queries, queries, symmetric=True):
        best.see(row, tile, begin + column)
        if column > row:
            best.see_columns(column, tile, begin + row)
    back = _see_both_ways(best, queries, corpus, end, k)
    return _nearest(best, queries, corpus, k), Neighbors(back.similarities, back.indices + begin)


def _see_both_ways(best: BestRows, queries: Vectors, corpus: Rows, first: int, k: int) -> Neighbors:
    """Compare queries with the rows from `first` on; return the nearest queries of each row."""
    shape = (0, min(k, len(queries)))
    parts = [Neighbors(np.empty(shape, np.float32), np.empty(shape, np.int64))]
    for begin, part in _parts(corpus, first):
        back = BestRows(len(part), min(k + SPARE, len(queries)))
        for row, column, tile in _tiles(queries, part):
            best.see(row, tile, begin + column)
            back.see_columns(column, tile, row)
        parts.append(_nearest(back, part, UnitRows(queries), k))
    return joined(parts)


def _parts(corpus: Rows, first: int) -> Iterator[tuple[int, Vectors]]:
    """Yield the rows from `first` on in parts that fit into memory, with their beginnings."""
    for begin, end in blocks(len(corpus) - first, max(_SIDE, _NUMBERS // corpus.dim)):
        yield first + begin, corpus.rows(first + begin, first + end)


def _tiles(
    queries: Vectors, part: Vectors, symmetric: bool = False
) -> Iterator[tuple[int, int, Vectors]]:
    """Yield first query, first row and similarities of blocks of queries and rows.

    The array of similarities is reused. If both are the same, `symmetric` leaves out the tiles
    below the diagonal.
    """
    height = min(_SIDE, len(queries))
    # for few queries, a product of the same size
    width = _SIDE if symmetric else _SIDE * _SIDE // height
    buffer = np.empty(height * min(width, len(part)), dtype=np.float32)
    for row, end in blocks(len(queries), height):
        for column, last in blocks(len(part), width):
            if symmetric and column < row:
                continue
            tile = buffer[: (end - row) * (last - column)].reshape(end - row, last - column)
            np.matmul(queries[row:end], part[column:last].T, out=tile)
            yield row, column, tile


def _nearest(best: BestRows, queries: Vectors, corpus: Rows, k: int) -> Neighbors:
    """Return the k nearest of the kept candidates, or all if there are fewer.

    A float32 product of unit vectors has an error of at most dim / 2^24, in any order of summation.
    Rows whose product is below the k-th by more than twice that cannot be among the nearest; this
    margin is doubled.
    """
    k = min(k, best.rows.shape[1])
    reach = best.similarities[:, k - 1 : k] - 4 * corpus.dim / 2**24
    rows = np.where(best.similarities < reach, -1, best.rows)
    return ranked(queries, corpus, rows, k=k)


def ranked(queries: Vectors, corpus: Rows, rows: NDArray[np.int64], k: int) -> Neighbors:
    """Return the k nearest of given rows, int64 (n, c >= k), -1 for none, by exact cosines.

    Missing neighbors have cosine -1 and row 0.
    """
    cosines = corpus.cosines(queries, rows)
    order = np.lexsort((rows, -cosines), axis=1)[:, :k]
    return Neighbors(cosines, np.maximum(rows, 0)).at(order)


class BestRows:
    """The c candidates most similar to each of n rows, best first; ties in the order of candidates.

    Tiles must come in the order of their candidates.

    Attributes:
        similarities: float32 (n, c), minus infinity for missing candidates.
        rows: Numbers of candidates, int64 (n, c), -1 for missing candidates.
    """

    def __init__(self, count: int, kept: int) -> None:
        """Begin without candidates for n = `count` rows, which keep c = `kept` candidates."""
        self.similarities = np.full((count, kept), -np.inf, dtype=np.float32)
        self.rows = np.full((count, kept), -1, dtype=np.int64)

    def see(self, begin: int, tile: Vectors, first: int) -> None:
        """Add a tile, (h, w): rows from `begin` on with candidates from `first` on."""
        rows = slice(begin, begin + tile.shape[0])
        self._see(rows, tile, first, of_columns=False)

    def see_columns(self, begin: int, tile: Vectors, first: int) -> None:
        """Add a tile, (h, w): candidates from `first` on with rows from `begin` on."""
        rows = slice(begin, begin + tile.shape[1])
        self._see(rows, tile, first, of_columns=True)

    def _see(self, own: slice, tile: Vectors, first: int, of_columns: bool) -> None:
        values = self.similarities[own]
        rows = self.rows[own]
        native = kernels()
        if native is not None:
            native.keep_best(tile, first, values, rows, of_columns, usable_threads())
        elif of_columns:
            _keep_best(tile.T, first, values, rows)
        else:
            _keep_best(tile, first, values, rows)


def _keep_best(tile: Vectors, first: int, values: Vectors, rows: NDArray[np.int64]) -> None:
    """Do the same as the kernel of this name.

    Few similarities of later tiles are among the best.
    """
    kept = values.shape[1]
    minimum = values[:, -1]
    if tile.shape[1] > kept and np.isneginf(minimum).any():
        minimum = np.maximum(minimum, np.partition(tile, -kept, axis=1)[:, -kept])
    own, columns = np.nonzero(tile >= minimum[:, None])
    touched = np.unique(own)
    all_own = np.concatenate([np.repeat(touched, kept), own])
    all_values = np.concatenate([values[touched].ravel(), tile[own, columns]])
    all_rows = np.concatenate([rows[touched].ravel(), columns + first])
    order = np.lexsort((all_rows, -all_values, all_own))
    starts = np.flatnonzero(np.diff(all_own[order], prepend=-1))
    chosen = order[(starts[:, None] + np.arange(kept)).ravel()]
    values[touched] = all_values[chosen].reshape(-1, kept)
    rows[touched] = all_rows[chosen].reshape(-1, kept)
