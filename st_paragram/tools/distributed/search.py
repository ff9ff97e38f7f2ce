"""Four steps that find neighbors: train an index, add vectors, choose the effort, and search."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import faiss
import numpy as np
from datatrove.utils.logging import logger
from numpy.typing import NDArray

from st_paragram.core.files import read_json, write_json
from st_paragram.tools.distributed.mining import MiningStep, Side, write_table
from st_paragram.tools.neighbors.exact import exact
from st_paragram.tools.neighbors.inexact import (
    Index,
    Lists,
    choose_index,
    find_effort,
    open_index,
    set_effort,
    trained_index,
    write_index,
)
from st_paragram.tools.neighbors.results import Neighbors, Vectors, united
from st_paragram.tools.neighbors.vectors import blocks
from st_paragram.tools.work import make

_SAMPLE = 120  # vectors per square root of all: at least 40 for each list of `choose_index`
_COPY = 512  # square root of all vectors per copy of an index
_EFFORT_QUERIES = 1000
_QUERIES = 1 << 13  # searched together
_LISTS = 1 << 24  # lists of queries in memory at a time


class TrainIndex(MiningStep):
    """Train an index of a side on a sample of its vectors. One task.

    The kind of index is that of `mine`. The sample has 120 to 240 vectors per square root of all.

    Args:
        folder: Folder that all steps of mining share.
        side: Side to index, `source` or `target`.
        settings: Options of `mine`; `index` and `seed` are used.

    Examples:
        >>> from st_paragram import MiningSettings
        >>> from st_paragram.distributed import TrainIndex
        >>> pipeline = [TrainIndex("mining", "source", MiningSettings(index="auto"))]
    """

    name = "🔎 Training"

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write an index without vectors."""
        sample = self.own.sample(_SAMPLE * math.isqrt(len(self.own)))
        wanted = self.settings.index
        factory = choose_index(wanted, len(self.other), len(self.own), dim=sample.dim) or "Flat"
        logger.info(f"{self.own.name}: index {factory}")
        index = trained_index(factory, [sample], self.settings.seed)
        make(self.own.path("trained", 0, ".faiss"), partial(write_index, index))


class IndexVectors(MiningStep):
    """Add the vectors of consecutive files to copies of the trained index.

    There are as many copies as leave 256 vectors in each list of `choose_index`, since a search is
    faster with fewer and larger files. Memory: a copy.

    Args:
        folder: Folder that all steps of mining share.
        side: Side to index, `source` or `target`.

    Examples:
        >>> from st_paragram.distributed import IndexVectors
        >>> pipeline = [IndexVectors("mining", "source")]
    """

    name = "🔎 Index"

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the copies of a task."""
        count = max(1, math.isqrt(len(self.own)) // _COPY)
        parts = np.array_split(self.own.files(), count)
        for number in range(rank, count, world_size):
            index = faiss.read_index(str(self.own.path("trained", 0, ".faiss")))
            for rows in self.own.vectors(parts[number]):
                index.add(rows.rows(0, len(rows)))
            make(self.own.path("index", number, ".faiss"), partial(write_index, index))


class DividedIndex(Index):
    """The index of a side in files, which are opened one after another.

    All files have the same lists, so the lists of queries are found once.
    """

    def __init__(self, side: Side) -> None:
        """Open the trained index."""
        self._side = side
        self._trained = open_index(side.path("trained", 0, ".faiss"))
        self.factory = type(self._trained).__name__
        self.corpus = side  # type: ignore[assignment] # it has the methods that a search needs
        self.parts = [(0, self._trained)]

    def nearest(self, queries: Vectors, k: int) -> Neighbors:
        """Compare queries, (n, D), with all vectors; the numbers are those within a block."""
        parts = ((0, exact(queries, rows, k)) for rows in self._side.vectors(self._side.files()))
        return united(parts, len(queries), k)

    def candidates(
        self, queries: Vectors, count: int, lists: Lists | None = None
    ) -> NDArray[np.int64]:
        """Find up to `count` sentences near each query, -1 for none, int64 (n, count)."""
        return united(self._candidates(queries, count), len(queries), count).indices

    def _candidates(self, queries: Vectors, count: int) -> Iterator[tuple[int, Neighbors]]:
        """Yield the candidates of blocks of queries in each file, as for `united`."""
        is_ivf = isinstance(self._trained, faiss.IndexIVF)
        for begin, end in blocks(len(queries), _LISTS // self.effort):
            block = queries[begin:end]
            if is_ivf:
                nearness, lists = self._trained.quantizer.search(block, self._trained.nprobe)
            indexed = 0
            for path in self._side.paths("index"):
                index = open_index(path)
                set_effort(index, self.effort)
                for first, last in blocks(len(block), _QUERIES):
                    if is_ivf:
                        scores, numbers = index.search_preassigned(
                            block[first:last], count, lists[first:last], nearness[first:last]
                        )
                    else:
                        scores, numbers = index.search(block[first:last], count)
                    scores[numbers < 0] = -np.inf
                    numbers = np.where(numbers < 0, -1, numbers + indexed)
                    yield begin + first, Neighbors(scores, numbers)
                indexed += index.ntotal


class ChooseEffort(MiningStep):
    """Choose the minimum search effort with enough recall for a sample of a side. One task.

    The sample is compared with all sentences of the other side.

    Args:
        folder: Folder that all steps of mining share.
        side: Side of the queries, `source` or `target`.
        settings: Options of `mine`; `recall`, `neighbors` and `seed` are used.

    Examples:
        >>> from st_paragram import MiningSettings
        >>> from st_paragram.distributed import ChooseEffort
        >>> pipeline = [ChooseEffort("mining", "source", MiningSettings(recall=0.99))]
    """

    name = "🔎 Effort"

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the effort."""
        queries = self.own.sample(_EFFORT_QUERIES)
        index = DividedIndex(self.other)
        effort = find_effort(queries, index, self.settings.neighbors, settings=self.settings)
        logger.info(f"{self.own.name}: {effort}")
        write_json(self.own.path("effort", 0, ".json"), effort.effort)


class SearchVectors(MiningStep):
    """Find the neighbors of each sentence of a side on the other side.

    For the sentences of a file, a task searches all files of the index, and reads all vectors once.
    Memory: the vectors and candidates of a file, and a file of the index.

    Args:
        folder: Folder that all steps of mining share.
        side: Side of the queries, `source` or `target`.
        settings: Options of `mine`; `neighbors` is used.

    Examples:
        >>> from st_paragram import MiningSettings
        >>> from st_paragram.distributed import SearchVectors
        >>> pipeline = [SearchVectors("mining", "source", MiningSettings(neighbors=4))]
    """

    name = "🔎 Search"

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the neighbors of the sentences of each file of a task."""
        index = DividedIndex(self.other)
        index.set_effort(read_json(self.own.path("effort", 0, ".json")))
        k = min(self.settings.neighbors, len(self.other))
        for file in self.own.files()[rank::world_size]:
            queries = [rows.rows(0, len(rows)) for rows in self.own.vectors([file])]
            neighbors = index.search(np.concatenate(queries), k)
            columns = {
                "cosine": neighbors.similarities.ravel(),
                "number": neighbors.indices.ravel(),
            }
            write_table(columns, self.own.path("neighbors", file))
            write_table({"mean": neighbors.means}, self.own.path("means", file))
