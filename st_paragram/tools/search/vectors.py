"""Embeddings on disk, in shards of half-precision or 8-bit numbers, read as unit vectors.

A shard is a `.npy` file of shape (n, D). Only the direction of an embedding counts here, so 8-bit rows need no scale:
each is stretched to use the whole range, and brought to length 1 when it is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.damage import DAMAGED, one_line
from st_paragram.core.npy_files import map_npy
from st_paragram.errors import MiningError
from st_paragram.tools.search.cosines import candidate_cosines
from st_paragram.tools.search.neighbours import Vectors

_BLOCK = 1 << 10  # rows converted at a time: they stay in the cache
_AGAIN = "remove the work folder and start again"


class VectorType(str, Enum):
    """Types of the numbers that embeddings are stored in."""

    FLOAT16 = "float16"
    INT8 = "int8"


def pack(vectors: Vectors, kind: VectorType, where: str) -> NDArray[Any]:
    """Bring embeddings to what is stored.

    Args:
        vectors: float32 (n, D), of any length but 0.
        kind: Of the result.
        where: What they are embeddings of, for messages.

    Raises:
        MiningError: An embedding is not finite, or of length 0.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    bad = np.flatnonzero(~(np.isfinite(lengths[:, 0]) & (lengths[:, 0] > 0)))
    if len(bad):
        seen = f"the embedding of sentence {bad[0] + 1} has length {float(lengths[bad[0], 0]):.3g}"
        raise MiningError(f"{where}: {seen}; the model is damaged or was not trained properly, take another")
    units = vectors / lengths
    if kind is VectorType.FLOAT16:
        return units.astype(np.float16)
    return np.rint(units * (127 / np.abs(units).max(axis=1, keepdims=True))).astype(np.int8)


def unpack(stored: NDArray[Any], into: Vectors | None = None) -> Vectors:
    """Unit vectors, float32 (n, D), of what is stored; written into an array of this shape if there is one."""
    vectors = np.empty(stored.shape, dtype=np.float32) if into is None else into
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK]
        block[...] = stored[start : start + _BLOCK]
        block /= _lengths(block)[:, None]
    return vectors


def _lengths(vectors: Vectors) -> Vectors:
    """Of rows, float32 (n,)."""
    lengths: Vectors = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
    return lengths


@dataclass(frozen=True)
class StoredVectors:
    """Embeddings of a text: n rows of D numbers in shards of equal numbers of rows, the last of which may be smaller.

    Attributes:
        shards: The files, in order.
    """

    shards: tuple[Path, ...]

    @cached_property
    def _maps(self) -> list[NDArray[Any]]:
        return _alike([_mapped(path) for path in self.shards], self.shards)

    @cached_property
    def lengths(self) -> Vectors:
        """What stored rows are divided by to become unit vectors, float32 (n,)."""
        parts = [
            _lengths(stored[begin:end].astype(np.float32))
            for stored in self._maps
            for begin, end in blocks(len(stored), _BLOCK)
        ]
        return np.concatenate(parts)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the maps behind: every process opens its own."""
        return {"shards": self.shards}

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Row at which each shard begins, and the number of rows: int64 (shards + 1,)."""
        return np.concatenate([[0], np.cumsum([len(stored) for stored in self._maps])]).astype(np.int64)

    def __len__(self) -> int:
        """Number of rows, n."""
        return int(self.starts[-1])

    @property
    def dim(self) -> int:
        """Components of a vector, D."""
        return int(self._maps[0].shape[1])

    def rows(self, begin: int, end: int) -> Vectors:
        """Unit vectors of the rows `begin` to `end`, float32 (end - begin, D)."""
        result = np.empty((end - begin, self.dim), dtype=np.float32)
        first = int(np.searchsorted(self.starts, begin, side="right")) - 1
        position = begin
        while position < end:
            stored, start = self._maps[first], int(self.starts[first])
            stop = min(end, start + len(stored))
            unpack(stored[position - start : stop - start], result[position - begin : stop - begin])
            position, first = stop, first + 1
        return result

    def take(self, rows: NDArray[np.int64]) -> Vectors:
        """Unit vectors of any rows, float32 (len(rows), D)."""
        result = np.empty((len(rows), self.dim), dtype=np.float32)
        which = np.searchsorted(self.starts, rows, side="right") - 1
        order = np.argsort(which, kind="stable")
        edges = np.searchsorted(which[order], np.arange(len(self._maps) + 1))
        for number, stored in enumerate(self._maps):
            positions = order[edges[number] : edges[number + 1]]
            if len(positions):
                result[positions] = unpack(stored[rows[positions] - self.starts[number]])
        return result

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
        return candidate_cosines(queries, [self.take(distinct)], np.ones(len(distinct), dtype=np.float32), taken)


def _mapped(path: Path) -> NDArray[Any]:
    try:
        return map_npy(path, [kind.value for kind in VectorType], 2)
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
    """Cut `count` rows into neighbouring blocks of `size`."""
    for begin in range(0, count, size):
        yield begin, min(begin + size, count)


def even_size(count: int, most: int) -> int:
    """Rows of the fewest blocks of at most `most`, all of one size: a small last one would not fill its lists."""
    return -(-count // -(-count // most))
