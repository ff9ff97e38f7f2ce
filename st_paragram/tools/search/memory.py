"""Exact search with the vectors of an index in memory, for programs that search repeatedly.

LanceDB keeps texts and fields, and evaluates conditions. faiss keeps the float16 vectors, and
computes the products of few queries. Lines identify vectors: the vector of a line never changes,
and new lines are larger. So a new version of the table needs only its new vectors.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
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
_BLOCK = 1 << 13  # rows converted to float32 at a time
_SCORES = 1 << 24  # computed at a time
_PART = 4  # with fewer than a quarter of the vectors, products are computed only for these
_FEW = 4  # queries for which copying these vectors would take longer than their products
_MANY = 32  # queries for which converting all vectors to float32 takes less time than faiss
_SPARE = 16  # further rows that faiss returns
_MOST_ROWS = 1000  # that faiss returns; it would sort more slowly than NumPy
_ROW_BYTES = 20  # of a line, a row id and a length


class StoredRows(Rows):
    """Vectors as they are in a table, float16, of length 1 except for rounding.

    Attributes:
        indexes: faiss's indexes, whose memory holds the shards.
    """

    def __init__(self, indexes: Sequence[Any]) -> None:
        self.indexes = indexes
        super().__init__([_vectors_of(index) for index in indexes])

    @cached_property
    def error(self) -> float:
        """Maximum difference between a product with a unit vector and its cosine.

        A float32 product of unit vectors has an error of at most dim / 2^24; this is doubled.
        """
        return float(np.abs(self.lengths - 1).max(initial=0)) + 2 * self.dim / 2**24

    def nearest(
        self, queries: Vectors, count: int, is_allowed: NDArray[np.bool_] | None
    ) -> tuple[Vectors, NDArray[np.int64]]:
        """Return the largest products with allowed rows, (q, c <= count), and the rows' numbers."""
        faiss = _faiss()
        parts = []
        numbers = []
        begin = 0
        for index in self.indexes:
            parameters = None
            end = begin + index.ntotal
            if is_allowed is not None:
                bits = np.packbits(is_allowed[begin:end], bitorder="little")
                selector = faiss.IDSelectorBitmap(bits)
                parameters = faiss.SearchParameters(sel=selector)
            products, rows = index.search(queries, min(count, index.ntotal), params=parameters)
            parts.append(np.where(rows < 0, -np.inf, products))
            numbers.append(rows + begin)
            begin = end
        products = np.concatenate(parts, axis=1)
        order = np.argsort(-products, axis=1, kind="stable")[:, :count]
        rows = np.concatenate(numbers, axis=1)
        return np.take_along_axis(products, order, 1), np.take_along_axis(rows, order, 1)

    def products(self, queries: Vectors) -> Vectors:
        """Return the products of queries with all rows, (q, m)."""
        products = np.empty((len(queries), len(self)), np.float32)
        first = 0
        for index in self.indexes:
            for begin, end in blocks(index.ntotal, _BLOCK):
                rows = index.reconstruct_n(begin, end - begin)
                np.matmul(queries, rows.T, out=products[:, first + begin : first + end])
            first += index.ntotal
        return products


def _indexes_of(vectors: NDArray[np.float16]) -> list[Any]:
    """Return faiss indexes with shards of vectors, (m, D)."""
    faiss = _faiss()
    kind = faiss.ScalarQuantizer.QT_fp16
    indexes = []
    for begin, end in blocks(len(vectors), _SHARD):
        index = faiss.IndexScalarQuantizer(vectors.shape[1], kind, faiss.METRIC_INNER_PRODUCT)
        index.add_sa_codes(vectors[begin:end].view(np.uint8))
        indexes.append(index)
    return indexes


def _vectors_of(index: Any) -> NDArray[np.float16]:
    """Return the vectors of a faiss index, (s, D), in its memory."""
    count = index.ntotal * index.d
    codes: NDArray[np.uint8] = _faiss().rev_swig_ptr(index.codes.data(), 2 * count)
    return codes.view(np.float16).reshape(-1, index.d)


def _faiss() -> ModuleType:
    return require("faiss", "search", "a repeated search in an index")


@dataclass(frozen=True)
class Snapshot:
    """The vectors of a version of a table, in the order of lines.

    Attributes:
        table: The table at this version.
        vectors: Vectors of m lines.
        lines: Ascending lines, int64 (m,).
        row_ids: LanceDB's ids, int64 (m,); -1 for deleted lines.
    """

    table: Any
    vectors: StoredRows
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
            candidates = self._candidates(queries[begin:end], places, request.k)
            for query, rows in zip(queries[begin:end], candidates, strict=True):
                cosines = self.vectors.cosines(query[None], rows[None])[0]
                order = np.lexsort((rows, -cosines))[: request.k]
                order = order[cosines[order] >= request.threshold]
                yield rows[order], cosines[order]

    def _candidates(
        self, queries: Vectors, places: NDArray[np.int64], k: int
    ) -> Iterator[NDArray[np.int64]]:
        """Yield, for each query, the places whose cosines may be among the k largest, and ties."""
        count = len(self.vectors)
        if _PART * len(places) < count:
            if len(queries) <= _FEW:
                products = self.vectors.cosines(queries, np.tile(places, (len(queries), 1)))
            else:
                products = queries @ self.vectors.take(places).T
            for row in products:
                yield places[self._largest(row, k)]
        elif len(queries) < _MANY and k <= _MOST_ROWS:
            is_allowed = None
            if len(places) < count:
                is_allowed = np.zeros(count, bool)
                is_allowed[places] = True
            products, rows = self.vectors.nearest(queries, k + _SPARE, is_allowed)
            for number, row in enumerate(products):
                largest = self._largest(row, k)
                if len(largest) < len(row) or len(row) == len(places):
                    yield rows[number, largest]
                else:  # further places may be as near
                    yield from self._from_products(queries[number : number + 1], places, k)
        else:
            yield from self._from_products(queries, places, k)

    def _from_products(
        self, queries: Vectors, places: NDArray[np.int64], k: int
    ) -> Iterator[NDArray[np.int64]]:
        """Do the same by products with all vectors."""
        products = self.vectors.products(queries)
        if len(places) < len(self.vectors):
            products = products[:, places]
        for row in products:
            yield places[self._largest(row, k)]

    def _largest(self, products: Vectors, k: int) -> NDArray[np.int64]:
        """Return the numbers of the products whose cosines may be among the k largest."""
        if len(products) <= k:
            return np.flatnonzero(products > -np.inf)
        smallest = np.partition(products, -k)[-k]
        is_near = products >= smallest - 2 * self.vectors.error
        return np.flatnonzero(is_near & (products > -np.inf))

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
            if table.count_rows() * (2 * dimension(table) + _ROW_BYTES) > self.limit:
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
    if earlier is not None and len(earlier.lines):
        reader = table.search().select(["line"]).with_row_id(True).to_batches(_BATCH)
        rows = pa.Table.from_batches(reader, reader.schema)
        lines = rows["line"].to_numpy()
        row_ids = rows["_rowid"].to_numpy().astype(np.int64)
        is_new = lines > earlier.lines[-1]
        new = row_ids[is_new]
        if 4 * len(new) < len(lines) and 4 * len(lines) > 3 * len(earlier.lines):
            return _extended(earlier, table, lines, row_ids, new)
    count = table.count_rows()
    vectors = np.empty((count, dimension(table)), np.float16)
    lines = np.empty(count, np.int64)
    row_ids = np.empty(count, np.int64)
    begin = 0
    for batch in table.search().select(["vector", "line"]).with_row_id(True).to_batches(_BATCH):
        end = begin + len(batch)
        vectors[begin:end] = stored_vectors(batch["vector"])
        lines[begin:end] = batch["line"].to_numpy()
        row_ids[begin:end] = batch["_rowid"].to_numpy()
        begin = end
    order = np.argsort(lines, kind="stable")
    if not np.array_equal(order, np.arange(count)):
        vectors = vectors[order]
    return Snapshot(table, StoredRows(_indexes_of(vectors)), lines[order], row_ids[order])


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
        added = stored_vectors(rows["vector"].combine_chunks())
        last = np.concatenate([vectors.shards[-1], added])
        lengths = np.concatenate([vectors.lengths, Rows([added]).lengths])
        vectors = StoredRows([*vectors.indexes[:-1], *_indexes_of(last)])
        vectors.lengths = lengths
        all_lines = np.concatenate([all_lines, rows["line"].to_numpy()])
    all_ids = np.full(len(all_lines), -1, np.int64)
    all_ids[np.searchsorted(all_lines, lines)] = row_ids
    return Snapshot(table, vectors, all_lines, all_ids)
