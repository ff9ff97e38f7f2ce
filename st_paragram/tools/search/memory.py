"""Exact search with the vectors of an index in memory, for programs that search repeatedly.

LanceDB keeps texts and fields, and evaluates conditions. Lines identify vectors: the vector of a
line never changes, and new lines are larger. So a new version of the table needs only its new
vectors.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.extras import require
from st_paragram.tools.neighbors.results import Vectors
from st_paragram.tools.neighbors.vectors import Rows, blocks
from st_paragram.tools.search.nearest import Ranked, Request, hits_of, stored_vectors
from st_paragram.tools.search.table import FOLDER, dimension, open_table, visible_columns
from st_paragram.tools.search.text_search import Hit

pa = require("pyarrow", "search")

MEMORY_LIMIT = 1 << 30  # bytes
_BATCH = 1 << 16  # rows read from a table at a time
_SHARD = 1 << 16  # rows of an array: a new version copies only the last array
_SCORES = 1 << 24  # computed at a time
_PART = 4  # with fewer than a quarter of the vectors, products are computed only for these
_FEW = 4  # queries for which copying these vectors would take longer than their products
_ROW_BYTES = 20  # of a line, a row id and a length


@dataclass(frozen=True)
class Snapshot:
    """The vectors of a version of a table, in the order of lines.

    Attributes:
        table: The table at this version.
        vectors: Unit vectors of m lines, float32.
        lines: Ascending lines, int64 (m,).
        row_ids: LanceDB's ids, int64 (m,); -1 for deleted lines.
    """

    table: Any
    vectors: Rows
    lines: NDArray[np.int64]
    row_ids: NDArray[np.int64]

    def search(self, queries: Vectors, request: Request) -> list[list[Hit]]:
        """Return the hits of each query, (q, D), as `nearest.search_table` does."""
        places = self._places(request)
        ranked: list[Ranked] = []
        if len(places):
            ranked = list(self._ranked(queries, places, request))
        else:
            ranked = [(places, np.empty(0, np.float32))] * len(queries)
        return self._hits(ranked)

    def _places(self, request: Request) -> NDArray[np.int64]:
        """Return the ascending places of the lines that pass the condition."""
        if request.condition is None:
            return np.flatnonzero(self.row_ids >= 0)
        query = self.table.search().where(request.condition).select(["line"])
        batches = query.to_batches(_BATCH, timeout=request.timeout)
        lines = [batch["line"].to_numpy() for batch in batches]
        if not lines:
            return np.empty(0, np.int64)
        return np.searchsorted(self.lines, np.sort(np.concatenate(lines)))

    def _ranked(
        self, queries: Vectors, places: NDArray[np.int64], request: Request
    ) -> Iterator[Ranked]:
        """Yield the places of the hits of each query, best first, and their cosines."""
        for begin, end in blocks(len(queries), max(1, _SCORES // len(self.vectors))):
            if request.timeout is not None and not request.timeout:
                raise TimeoutError("the search took too long")
            products = self._products(queries[begin:end], places)
            for query, scores in zip(queries[begin:end], products, strict=True):
                rows = places[_candidates(scores, request.k, self.vectors.dim)]
                cosines = self.vectors.cosines(query[None], rows[None])[0]
                order = np.lexsort((rows, -cosines))[: request.k]
                order = order[cosines[order] >= request.threshold]
                yield rows[order], cosines[order]

    def _products(self, queries: Vectors, places: NDArray[np.int64]) -> Vectors:
        """Return the products of queries, (q, D), with the vectors at p places, (q, p)."""
        count = len(self.vectors)
        if _PART * len(places) < count:
            if len(queries) <= _FEW:
                return self.vectors.cosines(queries, np.tile(places, (len(queries), 1)))
            return queries @ self.vectors.take(places).T
        products = np.empty((len(queries), count), np.float32)
        begin = 0
        for shard in self.vectors.shards:
            end = begin + len(shard)
            np.matmul(queries, shard.T, out=products[:, begin:end])
            begin = end
        return products if len(places) == count else products[:, places]

    def _hits(self, ranked: Sequence[Ranked]) -> list[list[Hit]]:
        """Read the sentences and fields of all hits together."""
        places = np.unique(np.concatenate([rows for rows, _ in ranked]))
        if not len(places):
            return [[] for _ in ranked]
        columns = [name for name in visible_columns(self.table) if name != "vector"]
        query = self.table.take_row_ids(self.row_ids[places].tolist()).select(columns)
        sentences = query.to_arrow().sort_by("line")
        hits = []
        for rows, cosines in ranked:
            numbers = np.searchsorted(places, rows)
            hits.append(hits_of(sentences.take(numbers), cosines))
        return hits


class VectorMemory:
    """Keeps the vectors of an index in memory, from the second search on, at its last version."""

    def __init__(self, folder: Path, limit: int) -> None:
        """Use up to `limit` bytes; a larger index is not kept."""
        self.folder = folder
        self.limit = limit
        self._lock = threading.Lock()
        self._is_repeated = False
        self._version: tuple[int, ...] | None = None
        self._snapshot: Snapshot | None = None

    def snapshot(self, table: Any) -> Snapshot | None:
        """Return the vectors of a table's last complete version; None if they are not kept."""
        with self._lock:
            if not self._is_repeated:
                self._is_repeated = True
                return None
            if table.count_rows() * (4 * dimension(table) + _ROW_BYTES) > self.limit:
                self._snapshot = None
                self._version = None
                return None
            state = (self.folder / FOLDER).stat()  # another folder may take its place
            version = (state.st_ino, state.st_ctime_ns, table.version)
            if version != self._version:
                earlier = self._snapshot
                if self._version is None or version[:2] != self._version[:2]:
                    earlier = None
                self._snapshot = None
                self._snapshot = _next_snapshot(open_table(self.folder), earlier)
                self._version = (*version[:2], self._snapshot.table.version)
            return self._snapshot


def _next_snapshot(table: Any, earlier: Snapshot | None) -> Snapshot:
    """Read the vectors of a table; those of an earlier snapshot are used again."""
    if earlier is not None:
        reader = table.search().select(["line"]).with_row_id(True).to_batches(_BATCH)
        rows = pa.Table.from_batches(reader, reader.schema)
        lines = rows["line"].to_numpy()
        row_ids = rows["_rowid"].to_numpy().astype(np.int64)
        is_new = lines > earlier.lines[-1]
        new = row_ids[is_new]
        if 4 * len(new) < len(lines) and 4 * len(lines) > 3 * len(earlier.lines):
            return _extended(earlier, table, lines, row_ids, new)
    count = table.count_rows()
    vectors = np.empty((count, dimension(table)), np.float32)
    lines = np.empty(count, np.int64)
    row_ids = np.empty(count, np.int64)
    begin = 0
    for batch in table.search().select(["vector", "line"]).with_row_id(True).to_batches(_BATCH):
        end = begin + len(batch)
        vectors[begin:end] = _unit(batch["vector"])
        lines[begin:end] = batch["line"].to_numpy()
        row_ids[begin:end] = batch["_rowid"].to_numpy()
        begin = end
    order = np.argsort(lines, kind="stable")
    if not np.array_equal(order, np.arange(count)):
        vectors = vectors[order]
    shards = [vectors[begin:end] for begin, end in blocks(count, _SHARD)]
    return Snapshot(table, _unit_rows(shards), lines[order], row_ids[order])


def _extended(
    earlier: Snapshot,
    table: Any,
    lines: NDArray[np.int64],
    row_ids: NDArray[np.int64],
    new: NDArray[np.int64],
) -> Snapshot:
    """Return an earlier snapshot with the rows of a new version; rows `new` have new lines."""
    vectors = earlier.vectors
    all_lines = earlier.lines
    if len(new):
        rows = table.take_row_ids(new.tolist()).select(["vector", "line"]).to_arrow()
        rows = rows.sort_by("line")
        added = _unit(rows["vector"].combine_chunks())
        *shards, last = vectors.shards
        last = np.concatenate([last, added])
        for begin, end in blocks(len(last), _SHARD):
            shards.append(last[begin:end])
        vectors = _unit_rows(shards)
        all_lines = np.concatenate([all_lines, rows["line"].to_numpy()])
    all_ids = np.full(len(all_lines), -1, np.int64)
    all_ids[np.searchsorted(all_lines, lines)] = row_ids
    return Snapshot(table, vectors, all_lines, all_ids)


def _unit(column: Any) -> Vectors:
    """Return the vectors of an Arrow array with length 1, as `Rows` computes them."""
    vectors = stored_vectors(column).astype(np.float32)
    vectors /= np.sqrt(np.einsum("nd,nd->n", vectors, vectors))[:, None]
    return vectors


def _unit_rows(shards: Sequence[Vectors]) -> Rows:
    rows = Rows(shards)
    rows.lengths = np.ones(len(rows), np.float32)
    return rows


def _candidates(products: Vectors, k: int, dim: int) -> NDArray[np.int64]:
    """Return the numbers of the products that may be among the k largest, and of all ties.

    A float32 product of unit vectors has an error of at most dim / 2^24; the margin is doubled.
    """
    if len(products) <= k:
        return np.arange(len(products))
    smallest = np.partition(products, -k)[-k]
    return np.flatnonzero(products >= smallest - 4 * dim / 2**24)
