"""Search in the LanceDB table of an index, by exact cosines.

LanceDB selects candidates, more than wanted, with queries that it rounds to float16. Their cosines
are then computed exactly. Exact cosines and lines decide the order, and which sentences are hits.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.tools.neighbors.results import Vectors
from st_paragram.tools.neighbors.vectors import Rows
from st_paragram.tools.search.table import (
    OWN_COLUMNS,
    measurement_of,
    retried,
    update_table,
    visible_columns,
)
from st_paragram.tools.search.text_search import Hit

if TYPE_CHECKING:
    from st_paragram.tools.search.memory import VectorMemory

DISTANCE = "dot"
MIN_CANDIDATES = 256  # sentences that an approximate search compares exactly, at least
CANDIDATES_PER_HIT = 4
_BLOCK = 8192  # vectors read at a time
_SPARE = 16  # further sentences of an exact search, at least
_TIES = 10_000  # more equal scores at the end of the hits are cut in any order
_ALL_LISTS = 1 << 20
_SCORE_ERROR = 1e-4  # of LanceDB

Ranked = tuple[NDArray[np.int64], Vectors]


@dataclass(frozen=True)
class Request:
    """What a search asks for."""

    k: int
    threshold: float
    condition: str | None = None  # for LanceDB
    recall: float | None = None
    end: float | None = None  # time at which it is given up, of `time.monotonic`

    @property
    def timeout(self) -> timedelta | None:
        """The time that is left."""
        if self.end is None:
            return None
        return timedelta(seconds=max(0.0, self.end - time.monotonic()))


def search_table(
    table: Any, queries: Vectors, request: Request, memory: VectorMemory | None = None
) -> list[list[Hit]]:
    """Return the hits of each query, (q, D); exact searches may use the vectors in `memory`."""
    if memory is not None:
        hits = retried(partial(_hits_from_memory, table, queries, request, memory))
        if hits is not None:
            return list(hits)
    return _hits_from_table(table, queries, request)


def _hits_from_memory(
    table: Any, queries: Vectors, request: Request, memory: VectorMemory
) -> list[list[Hit]] | None:
    """Return the hits of an exact search; None for an approximate search, or without vectors."""
    update_table(table)
    measurement = measurement_of(table)
    if measurement is not None and measurement.visited(request.recall) is not None:
        return None
    snapshot = memory.snapshot(table)
    return None if snapshot is None else snapshot.search(queries, request)


def _hits_from_table(table: Any, queries: Vectors, request: Request) -> list[list[Hit]]:
    """Return the hits of each query from LanceDB's candidates.

    If sentences after the last candidate may be as near as the last hit, the search is repeated
    with more candidates.
    """
    k = request.k
    hits: list[list[Hit]] = [[] for _ in queries]
    pending = list(range(len(queries)))
    spare = max(_SPARE, k // 8)
    while pending:
        count = k + spare
        search = partial(_visited_candidates, table, queries[pending], count, request)
        candidates, ranked, available = retried(search)
        repeated = []
        for number, (rows, cosines) in zip(pending, ranked, strict=True):
            if len(rows) < available:  # the visited lists hold too few sentences
                query = queries[number : number + 1]
                (hits[number],) = _hits_from_table(table, query, replace(request, recall=1.0))
            elif (
                len(rows) < count or spare >= _TIES or cosines[k - 1] - cosines[-1] >= _SCORE_ERROR
            ):
                is_hit = cosines[:k] >= request.threshold
                hits[number] = hits_of(candidates.take(rows[:k][is_hit]), cosines[:k][is_hit])
            else:
                repeated.append(number)
        pending = repeated
        spare *= 8
    return hits


def _visited_candidates(
    table: Any, queries: Vectors, count: int, request: Request
) -> tuple[Any, list[Ranked], int]:
    """Return at least `count` candidates for each query, from the last version of the table.

    Returns:
        The result of `find_candidates`, and the number of candidates of each query that an
        approximate search without a condition has, if the lists hold enough.
    """
    update_table(table)
    size = table.count_rows()
    lists = None
    measurement = measurement_of(table)
    if measurement is not None:
        lists = measurement.visited(request.recall)
    available = 0
    if lists is not None and request.condition is None:
        available = min(_limit(count), size)
    elif lists is not None:
        lists = _ALL_LISTS
    candidates, ranked = find_candidates(table, queries, min(count, size + 1), request, lists)
    return candidates, ranked, available


def find_candidates(
    table: Any, queries: Vectors, count: int, request: Request, lists: int | None
) -> tuple[Any, list[Ranked]]:
    """Return at least `count` candidates for each query, or all sentences that pass the condition.

    `lists` is the number of lists to visit in an approximate index; None: compare all sentences.

    Returns:
        Arrow table of the candidates, and for each query, its rows in the table and their cosines,
        best first, ties in the order of lines.
    """
    if lists is None:
        query = _nearest(table, queries).bypass_vector_index().limit(count)
    else:
        query = nearest_in_lists(table, queries, lists, _limit(count))
    query = query.select([*visible_columns(table), "_distance"])
    if request.condition is not None:
        query = query.where(request.condition)
    candidates = query.to_arrow(timeout=request.timeout)
    ranked = list(_ranked(queries, candidates))
    return candidates.drop_columns(["vector"]), ranked


def _nearest(table: Any, queries: Vectors) -> Any:
    return table.search(list(queries), vector_column_name="vector").distance_type(DISTANCE)


def nearest_in_lists(table: Any, queries: Vectors, lists: int, count: int) -> Any:
    """Return a LanceDB query for `count` candidates of each query in some lists."""
    # A maximum above the minimum would visit all lists for some queries, and stop at the first
    # matches of a condition.
    query = _nearest(table, queries).minimum_nprobes(lists).maximum_nprobes(lists)
    return query.limit(count)


def _limit(count: int) -> int:
    """Return the number of candidates of an approximate search, the same up to 40 sentences."""
    return max(MIN_CANDIDATES, CANDIDATES_PER_HIT * count)


def _ranked(queries: Vectors, candidates: Any) -> Iterator[Ranked]:
    """Sort the candidates of each query by exact cosines, then by lines."""
    count = len(candidates)
    numbers = np.zeros(count, np.int64)
    if len(queries) > 1:
        numbers = candidates["query_index"].to_numpy()
    lines = candidates["line"].to_numpy()
    stored = Rows([stored_vectors(candidates["vector"].combine_chunks())])
    for number in range(len(queries)):
        rows = np.flatnonzero(numbers == number)
        cosines = stored.cosines(queries[number : number + 1], rows[None])[0]
        order = np.lexsort((lines[rows], -cosines))
        yield rows[order], cosines[order]


def stored_vectors(column: Any) -> NDArray[np.float16]:
    """Return the vectors of an Arrow array, float16 (n, D)."""
    vectors: NDArray[np.float16] = column.flatten().to_numpy()
    return vectors.reshape(-1, column.type.list_size)


def unit_blocks(table: Any) -> Iterator[tuple[Vectors, NDArray[np.int64]]]:
    """Yield the vectors of a table in blocks, (n, D), of length 1, and their row ids, (n,)."""
    query = table.search().select(["vector"]).with_row_id(True)
    for batch in query.to_batches(_BLOCK):
        vectors = stored_vectors(batch["vector"]).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        yield vectors, batch["_rowid"].to_numpy().astype(np.int64)


def hits_of(rows: Any, scores: Vectors) -> list[Hit]:
    """Return hits from the rows of an Arrow table and their scores."""
    hits = []
    for row, score in zip(rows.to_pylist(), scores.tolist(), strict=True):
        fields = {}
        for name, value in row.items():
            if name not in OWN_COLUMNS and value is not None:
                fields[name] = value
        hits.append(Hit(min(score, 1.0), row["line"], row["text"], fields))
    return hits
