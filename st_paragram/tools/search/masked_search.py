"""The k nearest of some rows of an index: of those that are not deleted, and that pass a filter.

What was built is searched as it was built, what was added later exactly. Where few rows may be found, these alone are
compared. An inexact index is asked for more, and queries for which it does not find enough are compared with all rows
that may be found.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.tools.search.exact import exact
from st_paragram.tools.search.neighbours import NONE, Neighbours, Vectors, united
from st_paragram.tools.search.segments import OpenIndex
from st_paragram.tools.search.settings import FLAT
from st_paragram.tools.search.stored_search import approximate, rows_at_a_time
from st_paragram.tools.search.vectors import Rows

_FEW = 0.1  # share of rows that are gathered rather than compared with all others

Found = NDArray[np.bool_]


class _SomeRows:
    """Some rows of others, in their order."""

    def __init__(self, rows: Rows, numbers: NDArray[np.int64]) -> None:
        self._rows, self._numbers = rows, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def dim(self) -> int:
        return self._rows.dim

    def rows(self, begin: int, end: int) -> Vectors:
        return self._rows.take(self._numbers[begin:end])

    def take(self, rows: NDArray[np.int64]) -> Vectors:
        return self._rows.take(self._numbers[rows])

    def cosines(self, queries: Vectors, rows: NDArray[np.int64]) -> Vectors:
        return self._rows.cosines(queries, np.where(rows < 0, -1, self._numbers[rows]))


def nearest(index: OpenIndex, queries: Vectors, k: int, found: Found | None, effort: int, memory: int) -> Neighbours:
    """Find the k nearest rows of all segments.

    Args:
        index: Its m rows are searched.
        queries: float32 (n, D), of length 1.
        k: At most as many as may be found.
        found: Which rows may be found, (m,); None: all.
        effort: Of an inexact index, see `indexes.set_effort`.
        memory: Bytes that vectors may take at a time.

    Returns:
        (n, k); places that are not filled have cosine -1 and row 0.
    """
    part_rows, parts = rows_at_a_time(memory, index.metadata.dimension), []
    for number in range(len(index.segments)):
        begin, end = index.starts[number : number + 2].tolist()
        own = None if found is None or found[begin:end].all() else found[begin:end]
        rows = index.rows(number, few=own is not None and own.sum() <= _FEW * len(own))
        if number == 0 and index.metadata.factory != FLAT:
            near = _through_index(rows, index.parts, queries, k, own, effort, part_rows)
        else:
            near = _exact(rows, queries, k, own, part_rows)
        parts.append((begin, near))
    if len(parts) == 1:
        return parts[0][1]
    none = np.full((len(queries), k), NONE, np.float32), np.zeros((len(queries), k), np.int64)
    shifted = [(0, Neighbours(near.similarities, near.indices + begin)) for begin, near in parts]
    return united([*shifted, (0, Neighbours(*none))], len(queries), k)


def _exact(rows: Rows, queries: Vectors, k: int, found: Found | None, part_rows: int) -> Neighbours:
    """The nearest of the rows that may be found, at most k."""
    if found is None:
        return exact(queries, rows, min(k, len(rows)), part_rows)
    count = int(found.sum())
    if count == 0:
        return Neighbours(np.empty((len(queries), 0), np.float32), np.empty((len(queries), 0), np.int64))
    if count > _FEW * len(rows):
        return exact(queries, rows, min(k, count), part_rows, np.flatnonzero(~found))
    numbers = np.flatnonzero(found)
    near = exact(queries, _SomeRows(rows, numbers), min(k, count), part_rows)
    return Neighbours(near.similarities, numbers[near.indices])


def _through_index(
    rows: Rows,
    parts: list[tuple[int, Any]],
    queries: Vectors,
    k: int,
    found: Found | None,
    effort: int,
    part_rows: int,
) -> Neighbours:
    if found is None:
        return approximate(queries, rows, parts, min(k, len(rows)), effort)
    count = int(found.sum())
    if count <= _FEW * len(rows):
        return _exact(rows, queries, k, found, part_rows)
    k = min(k, count)
    near = approximate(queries, rows, parts, k, effort, found, math.ceil(k * len(rows) / count))
    if len(short := np.flatnonzero(near.similarities[:, -1] <= NONE)):
        again = _exact(rows, queries[short], k, found, part_rows)
        near.similarities[short], near.indices[short] = again.similarities, again.indices
    return near
