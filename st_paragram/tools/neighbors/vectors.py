"""Embeddings that are searched, as vectors of length 1: in memory, or on disk in `.npy` shards of float16 or int8.

Only the direction of an embedding counts here, so rows of int8 need no scales.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from st_paragram.core.encoding.models import TextEncoder, load_encoder
from st_paragram.errors import MiningError, refused
from st_paragram.tools.neighbors.cosines import candidate_cosines, divided
from st_paragram.tools.neighbors.results import Vectors
from st_paragram.tools.neighbors.sentences import Sentences
from st_paragram.tools.neighbors.settings import VectorType
from st_paragram.tools.work import make

SHARD = 1 << 15  # rows of a shard: what an interruption can cost
_BLOCK = 1 << 12


class Rows:
    """m vectors of length 1 and D components, computed from what is stored of them.

    Attributes:
        shards: Arrays (s, D) of float32, float16 or int8, of equal numbers of rows but for the last one.
    """

    def __init__(self, shards: Sequence[NDArray[Any]]) -> None:
        """Take vectors of any length but 0."""
        self.shards = shards

    @cached_property
    def lengths(self) -> Vectors:
        """What stored rows are divided by to become unit vectors, float32 (m,)."""
        return np.concatenate([row_lengths(stored) for stored in self.shards])

    def __len__(self) -> int:
        """Number of rows, m."""
        return sum(map(len, self.shards))

    @property
    def dim(self) -> int:
        """Components of a vector, D."""
        return int(self.shards[0].shape[1])

    def rows(self, begin: int, end: int) -> Vectors:
        """The rows `begin` to `end`, float32 (end - begin, D)."""
        result, size = np.empty((end - begin, self.dim), np.float32), len(self.shards[0])
        for number in range(begin // size, -(-end // size)):
            first, last = max(begin, number * size), min(end, (number + 1) * size)
            result[first - begin : last - begin] = self.shards[number][first - number * size : last - number * size]
        result /= self.lengths[begin:end, None]
        return result

    def take(self, rows: NDArray[np.int64]) -> Vectors:
        """Rows by their numbers, float32 (len(rows), D)."""
        return divided(self.shards, self.lengths, rows)

    def cosines(self, queries: Vectors, rows: NDArray[np.int64]) -> Vectors:
        """Cosine of each query with the rows given for it, see `candidate_cosines`."""
        return candidate_cosines(queries, self.shards, self.lengths, rows)


class UnitRows(Rows):
    """Rows float32 (m, D) in memory that are of length 1 already, and are taken as they are."""

    def __init__(self, vectors: Vectors) -> None:
        """Take them."""
        super().__init__([vectors])

    @cached_property
    def lengths(self) -> Vectors:
        """Ones."""
        return np.ones(len(self), np.float32)

    def rows(self, begin: int, end: int) -> Vectors:
        """A view."""
        return np.asarray(self.shards[0][begin:end])


def embed_sentences(sentences: Sentences, folder: Path, model: Path, kind: VectorType, name: str) -> Rows:
    """The vectors of sentences, in a folder of shards; only those that are not there are computed.

    Args:
        sentences: To embed.
        folder: Should be named by the sentences, the model and the kind.
        model: Directory of a model, which is opened if need be.
        kind: Type of the numbers on disk.
        name: Of the text, for messages.
    """
    encoder: list[TextEncoder] = []

    def write(begin: int, end: int, path: Path) -> None:
        if not encoder:
            encoder.append(load_encoder(model))
        vectors = encoder[0].encode(sentences.texts(slice(begin, end)), show_progress_bar=False)
        np.save(path, pack(vectors, kind, name, begin))

    shards = list(blocks(len(sentences), SHARD))
    paths = [
        make(folder / f"{begin:09d}.npy", partial(write, begin, end))
        for begin, end in tqdm(shards, desc="embed", unit=" shards", disable=None, leave=False)
    ]
    with refused(MiningError, folder, "embeddings are damaged", "remove the folder and start again"):
        return Rows([np.load(path, mmap_mode="r") for path in paths])


def pack(vectors: Vectors, kind: VectorType, where: str, first: int = 0) -> NDArray[Any]:
    """What is stored of embeddings, float16 or int8 (n, D); arguments as of `unit_rows`."""
    units = unit_rows(vectors, where, first)
    if kind is VectorType.FLOAT16:
        return units.astype(np.float16)
    return np.rint(units * (127 / np.abs(units).max(axis=1, keepdims=True))).astype(np.int8)


def unit_rows(vectors: Vectors, where: str, first: int = 0) -> Vectors:
    """Embeddings at length 1.

    Args:
        vectors: float32 (n, D), of any length but 0.
        where: What they are embeddings of, for messages.
        first: Number of the first, from 0.
    """
    vectors = np.asarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    bad = np.flatnonzero(~(np.isfinite(lengths[:, 0]) & (lengths[:, 0] > 0)))
    if len(bad):
        seen = f"the embedding of number {first + bad[0] + 1} has length {float(lengths[bad[0], 0]):.3g}"
        raise MiningError(f"{where}: {seen}; the model is damaged or was not trained properly; use another")
    return vectors / lengths


def row_lengths(stored: NDArray[Any]) -> Vectors:
    """Lengths of rows (n, D) of any type, float32 (n,)."""
    lengths = np.empty(len(stored), np.float32)
    for begin, end in blocks(len(stored), _BLOCK):
        rows = stored[begin:end].astype(np.float32)
        lengths[begin:end] = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    return lengths


def blocks(count: int, size: int) -> Iterator[tuple[int, int]]:
    """Cut `count` rows into neighboring blocks of `size`."""
    for begin in range(0, count, size):
        yield begin, min(begin + size, count)
