"""Unit vectors for search, in memory or on disk, in `.npy` shards of float16 or int8.

Only the direction of an embedding matters here, so int8 rows need no scales.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from st_paragram.core.encoding.models import TextEncoder, load_encoder
from st_paragram.core.encoding.unit_embeddings import unit_embeddings
from st_paragram.core.native import kernels, usable_threads
from st_paragram.errors import MiningError, ModelDirectoryError, refused
from st_paragram.tools.neighbors.results import NONE, Vectors
from st_paragram.tools.neighbors.sentences import Sentences
from st_paragram.tools.neighbors.settings import VectorType
from st_paragram.tools.work import make

SHARD = 1 << 15  # rows of a shard, which an interruption can lose
_BLOCK = 1 << 12
_LANES = 16
_NUMBERS = 1 << 21  # numbers in double precision at a time


class Rows:
    """m unit vectors with D dimensions, computed from stored vectors.

    Attributes:
        shards: Arrays (s, D) of float32, float16 or int8, with equal numbers of rows except the
            last.
        places: Numbers of the m rows in the shards, int64 (m,); None: all rows.
    """

    places: NDArray[np.int64] | None = None

    def __init__(self, shards: Sequence[NDArray[Any]]) -> None:
        """Use vectors of any length except 0."""
        self.shards = shards

    @cached_property
    def lengths(self) -> Vectors:
        """The lengths of all stored rows, by which they are divided, float32."""
        count = sum(map(len, self.shards))
        lengths = np.empty(count, np.float32)
        for begin, end in blocks(count, _BLOCK):
            rows = self._stored(begin, end)
            lengths[begin:end] = np.sqrt(np.einsum("nd,nd->n", rows, rows))
        return lengths

    def leave_out_zeros(self) -> None:
        """Leave out stored rows of length 0: texts without a known token."""
        if not self.lengths.all():
            self.places = np.flatnonzero(self.lengths)

    def stored_numbers(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers of rows in the shards; -1 stays -1."""
        if self.places is None:
            return rows
        return np.where(rows < 0, rows, self.places[rows])

    def __len__(self) -> int:
        """Number of rows, m."""
        return sum(map(len, self.shards)) if self.places is None else len(self.places)

    @property
    def dim(self) -> int:
        """Dimensions of a vector, D."""
        return int(self.shards[0].shape[1])

    def rows(self, begin: int, end: int) -> Vectors:
        """Return the rows `begin` to `end`, float32 (end - begin, D)."""
        if self.places is not None:
            return self.take(np.arange(begin, end))
        rows = self._stored(begin, end)
        rows /= self.lengths[begin:end, None]
        return rows

    def _stored(self, begin: int, end: int) -> Vectors:
        result = np.empty((end - begin, self.dim), np.float32)
        size = len(self.shards[0])
        for number in range(begin // size, math.ceil(end / size)):
            shard_begin = number * size
            first = max(begin, shard_begin)
            last = min(end, shard_begin + size)
            rows = self.shards[number][first - shard_begin : last - shard_begin]
            result[first - begin : last - begin] = rows
        return result

    def take(self, rows: NDArray[np.int64]) -> Vectors:
        """Return rows by number, float32 (len(rows), D)."""
        rows = self.stored_numbers(rows)
        numbers, places = np.divmod(rows, len(self.shards[0]))
        vectors = np.empty((len(rows), self.dim), np.float32)
        for number in np.unique(numbers):
            vectors[numbers == number] = self.shards[number][places[numbers == number]]
        vectors /= self.lengths[rows, None]
        return vectors

    def cosines(self, queries: Vectors, rows: NDArray[np.int64]) -> Vectors:
        """Compute the cosines of each query, (n, D), with given rows, int64 (n, c), -1 for none.

        They are summed in float64, always in the same order, and rounded once. So they are the same
        in both directions, for equal vectors at any position, and with or without the kernels.
        """
        queries = np.ascontiguousarray(queries)
        rows = np.ascontiguousarray(rows)
        result = np.full(rows.shape, NONE, dtype=np.float32)
        native = kernels()
        if native is not None and all(shard.flags.aligned for shard in self.shards):
            stored = np.ascontiguousarray(self.stored_numbers(rows))
            shards = [_for_kernel(shard) for shard in self.shards]
            native.candidate_cosines(
                queries, shards, self.lengths, stored, result, usable_threads()
            )
            return result
        for begin, end in blocks(len(rows), max(1, _NUMBERS // max(1, rows.shape[1] * self.dim))):
            block = rows[begin:end]
            distinct, places = np.unique(block, return_inverse=True)
            vectors = self.take(np.maximum(distinct, 0))[places.reshape(-1, rows.shape[1])]
            cosines = sums_in_lanes(queries[begin:end, None], vectors)
            result[begin:end] = np.where(block < 0, NONE, cosines)
        return result


def _for_kernel(shard: NDArray[Any]) -> NDArray[Any]:
    return shard.view(np.uint16) if shard.dtype == np.float16 else shard


class UnitRows(Rows):
    """Rows, float32 (m, D), in memory that are already unit vectors and are not changed."""

    def __init__(self, vectors: Vectors) -> None:
        """Use the vectors."""
        super().__init__([vectors])
        self.lengths = np.ones(len(vectors), np.float32)

    def rows(self, begin: int, end: int) -> Vectors:
        """Return a view."""
        return np.asarray(self.shards[0][begin:end])


def sums_in_lanes(one: Vectors, other: Vectors) -> NDArray[np.float64]:
    """Sum products of vectors along the last axis.

    Component d is added to lane d % 16, then the lanes are added by halves.
    """
    dim = other.shape[-1]
    lanes = np.zeros((*np.broadcast_shapes(one.shape[:-1], other.shape[:-1]), _LANES))
    for begin, end in blocks(dim, _LANES):
        lanes[..., : end - begin] += one[..., begin:end].astype(np.float64) * other[..., begin:end]
    while lanes.shape[-1] > 1:
        half = lanes.shape[-1] // 2
        lanes = lanes[..., :half] + lanes[..., half:]
    return lanes[..., 0]


def embed_sentences(
    sentences: Sentences, folder: Path, model: Path, kind: VectorType, name: str
) -> Rows:
    """Embed sentences to a folder of shards; only missing shards are computed.

    Sentences without a known token are stored as zeros, and the result leaves them out.

    Args:
        sentences: Sentences to embed.
        folder: Folder, whose name should depend on the sentences, the model and the kind.
        model: Directory of a model, which is opened only if needed.
        kind: Number type on disk.
        name: Name of the text, for messages.
    """

    @cache
    def encoder() -> TextEncoder:
        return load_encoder(model)

    def write(begin: int, end: int, path: Path) -> None:
        try:
            vectors = unit_embeddings(encoder(), sentences.texts(slice(begin, end))).vectors
        except ModelDirectoryError as error:
            raise MiningError(f"{name}, sentences from {begin + 1:,} on: {error}") from error
        np.save(path, pack(vectors, kind))

    paths = []
    shards = list(blocks(len(sentences), SHARD))
    for begin, end in tqdm(shards, desc="embed", unit=" shards", disable=None, leave=False):
        paths.append(make(folder / f"{begin:09d}.npy", partial(write, begin, end)))
    with refused(
        MiningError, folder, "embeddings are damaged", "remove the folder and start again"
    ):
        rows = Rows([np.load(path, mmap_mode="r") for path in paths])
        rows.leave_out_zeros()
        return rows


def pack(vectors: Vectors, kind: VectorType) -> NDArray[Any]:
    """Convert vectors of length 1, or of zeros, for storage, float16 or int8 (n, D)."""
    if kind is VectorType.FLOAT16:
        return vectors.astype(np.float16)
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    largest[largest == 0] = 1
    return np.rint(vectors * (127 / largest)).astype(np.int8)


def blocks(count: int, size: int) -> Iterator[tuple[int, int]]:
    """Divide `count` rows into consecutive blocks of `size`."""
    for begin in range(0, count, size):
        yield begin, min(begin + size, count)
