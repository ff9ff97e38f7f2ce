"""Embeddings that a search goes through as unit vectors: on disk in shards, or in memory.

A shard is a `.npy` file of half-precision or 8-bit numbers, shape (n, D). Only the direction of an embedding counts
here, so 8-bit rows need no scale (see `packing.stretch`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.packing import BLOCK
from st_paragram.errors import DAMAGED, MiningError, one_line
from st_paragram.tools.embed_files.shards import ShardedRows
from st_paragram.tools.search.cosines import candidate_cosines
from st_paragram.tools.search.neighbours import Vectors

_AGAIN = "remove the work folder and start again"


class VectorType(str, Enum):
    """Types of the numbers that embeddings are stored in."""

    FLOAT16 = "float16"
    INT8 = "int8"


def pack(vectors: Vectors, kind: VectorType, where: str) -> NDArray[Any]:
    """What is stored of embeddings, float16 or int8 (n, D); arguments and errors as of `unit_rows`."""
    units = unit_rows(vectors, where)
    return units.astype(np.float16) if kind is VectorType.FLOAT16 else stretch(units)


def unit_rows(vectors: Vectors, where: str) -> Vectors:
    """Embeddings at length 1.

    Args:
        vectors: float32 (n, D), of any length but 0.
        where: What they are embeddings of, for messages.

    Raises:
        MiningError: An embedding is not finite, or of length 0.
    """
    vectors = np.asarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    bad = np.flatnonzero(~(np.isfinite(lengths[:, 0]) & (lengths[:, 0] > 0)))
    if len(bad):
        seen = f"the embedding of number {bad[0] + 1} has length {float(lengths[bad[0], 0]):.3g}"
        raise MiningError(f"{where}: {seen}; the model is damaged or was not trained properly; use another")
    return vectors / lengths


class Rows(Protocol):
    """Vectors of length 1 that are searched, m rows of D components."""

    def __len__(self) -> int:
        """Number of rows, m."""

    @property
    def dim(self) -> int:
        """Components of a vector, D."""

    def rows(self, begin: int, end: int) -> Vectors:
        """The rows `begin` to `end`, float32 (end - begin, D)."""

    def take(self, rows: NDArray[np.int64]) -> Vectors:
        """Rows by their numbers, float32 (len(rows), D)."""

    def cosines(self, queries: Vectors, rows: NDArray[np.int64]) -> Vectors:
        """Cosine of each query with the rows given for it, -1 where that is -1: float32 (n, c)."""


class HeldRows:
    """Rows that are in memory."""

    def __init__(self, vectors: Vectors) -> None:
        """Take them as they are.

        Args:
            vectors: float32 (m, D), of length 1.
        """
        self._vectors, self._ones = vectors, np.ones(len(vectors), dtype=np.float32)

    def __len__(self) -> int:
        """Number of rows, m."""
        return len(self._vectors)

    @property
    def dim(self) -> int:
        """Components of a vector, D."""
        return int(self._vectors.shape[1])

    def rows(self, begin: int, end: int) -> Vectors:
        """The rows `begin` to `end`, float32 (end - begin, D)."""
        return self._vectors[begin:end]

    def take(self, rows: NDArray[np.int64]) -> Vectors:
        """Rows by their numbers, float32 (len(rows), D)."""
        return self._vectors[rows]

    def cosines(self, queries: Vectors, rows: NDArray[np.int64]) -> Vectors:
        """As of `StoredVectors`."""
        return candidate_cosines(queries, [self._vectors], self._ones, rows)


@dataclass(frozen=True)
class StoredVectors(ShardedRows):
    """Embeddings of a text: n rows of D numbers in shards of equal numbers of rows, the last of which may be smaller.

    `rows` and `take` give unit vectors.

    Attributes:
        shards: The files, in order.
    """

    shards: tuple[Path, ...]

    @cached_property
    def _maps(self) -> list[NDArray[Any]]:
        return _alike([_mapped(path) for path in self.shards], self.shards)

    def open(self) -> None:
        """Map the files now: they can be read on when they are removed."""
        _ = self._maps

    def packed(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Rows of the first shard as they are stored, float16 or int8 (len(rows), D)."""
        return np.asarray(self._maps[0][rows])

    @cached_property
    def lengths(self) -> Vectors:
        """What stored rows are divided by to become unit vectors, float32 (n,)."""
        return np.concatenate([row_lengths(stored) for stored in self._maps])

    def __getstate__(self) -> dict[str, Any]:
        """Leave the maps behind: every process opens its own."""
        return {"shards": self.shards}

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Row at which each shard begins, and the number of rows: int64 (shards + 1,)."""
        return np.cumsum([0, *(len(stored) for stored in self._maps)], dtype=np.int64)

    @property
    def dim(self) -> int:
        """Components of a vector, D."""
        return int(self._maps[0].shape[1])

    def fill(self, out: Vectors, shard: int, rows: slice | NDArray[np.int64]) -> None:
        """Put unit vectors of a shard's rows into an array float32 (rows, D)."""
        unit_vectors(self._maps[shard][rows], out)

    def cosines(self, queries: Vectors, rows: NDArray[np.int64]) -> Vectors:
        """Cosine of each query with the rows given for it.

        Args:
            queries: float32 (n, D), of length 1.
            rows: int64 (n, c), -1 for none.

        Returns:
            float32 (n, c), -1 where there is no row.
        """
        if "lengths" in self.__dict__ or rows.size >= len(self):
            return candidate_cosines(queries, self._maps, self.lengths, rows)
        distinct, where = np.unique(np.maximum(rows, 0), return_inverse=True)  # too few for a pass over all
        taken = np.where(rows < 0, -1, where.reshape(rows.shape))
        return HeldRows(self.take(distinct)).cosines(queries, taken)


def _mapped(path: Path) -> NDArray[Any]:
    try:
        return np.load(path, mmap_mode="r")
    except DAMAGED as error:
        raise MiningError(f"{path}: embeddings are damaged ({one_line(error)}); {_AGAIN}") from error


def _alike(maps: list[NDArray[Any]], shards: tuple[Path, ...]) -> list[NDArray[Any]]:
    """The shards, all of one type and of one number of components."""
    for stored, path in zip(maps, shards, strict=True):
        if (stored.dtype, stored.shape[1]) != (maps[0].dtype, maps[0].shape[1]):
            seen = f"{stored.dtype} of {stored.shape[1]} components, unlike {shards[0].name}"
            raise MiningError(f"{path}: {seen}; {_AGAIN}")
    return maps


def blocks(count: int, size: int) -> Iterator[tuple[int, int]]:
    """Cut `count` rows into neighboring blocks of `size`."""
    for begin in range(0, count, size):
        yield begin, min(begin + size, count)


def even_size(count: int, most: int) -> int:
    """Rows of the fewest blocks of at most `most`, all of one size: a small last one would not fill its lists."""
    return -(-count // -(-count // most))


def stretch(units: Vectors) -> NDArray[np.int8]:
    """Directions in int8, without scales; none of the rows (n, D) may be zero."""
    return np.rint(units * (127 / np.abs(units).max(axis=1, keepdims=True))).astype(np.int8)


def row_lengths(stored: NDArray[Any]) -> Vectors:
    """Lengths of rows (n, D) of any type, float32 (n,)."""
    lengths = np.empty(len(stored), np.float32)
    for begin in range(0, len(stored), BLOCK):
        rows = stored[begin : begin + BLOCK].astype(np.float32)
        lengths[begin : begin + BLOCK] = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    return lengths


def unit_vectors(stored: NDArray[Any], out: Vectors | None = None) -> Vectors:
    """Rows (n, D) of any type scaled to length 1, float32, in new memory or in an array of this shape."""
    return np.divide(stored, row_lengths(stored)[:, None], out=out, dtype=np.float32)
