"""Two steps that find neighbors: index one side in parts, and search all parts for the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import faiss
import numpy as np
import pyarrow as pa
from datatrove.utils.logging import logger

from st_paragram.core.files import atomic
from st_paragram.core.folders import temporary_folder
from st_paragram.core.formatting import counted
from st_paragram.errors import MiningError
from st_paragram.tools.distributed.mining import MiningStep, write_table
from st_paragram.tools.neighbors.exact import nearest_by
from st_paragram.tools.neighbors.inexact import Index, choose_index, find_effort
from st_paragram.tools.neighbors.results import NONE, Neighbors, Vectors, united
from st_paragram.tools.neighbors.settings import Size
from st_paragram.tools.neighbors.vectors import blocks

_SPARE = 28  # candidates in addition to the neighbors, as in `mine`
_QUERIES = 1 << 13  # searched at a time


class IndexVectors(MiningStep):
    """Index the vectors of consecutive files of a side, as `mine` indexes parts of a text.

    Each task makes one index, with the minimum search effort that finds enough of the nearest
    neighbors of a sample of the other side. With few large indexes, a search takes less time and
    more memory. Memory: the vectors and the index.

    Args:
        folder: Folder that all steps of mining share.
        side: Side to index, `source` or `target`.
        settings: Options of `mine`; `index`, `recall`, `neighbors` and `seed` are used.

    Example:
        >>> from st_paragram import MiningSettings
        >>> from st_paragram.distributed import IndexVectors
        >>> pipeline = [IndexVectors("mining", "source", MiningSettings(recall=0.99))]
    """

    name = "🔎 Index"

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the index of a task."""
        files = np.array_split(self.own.files(), world_size)[rank]
        if not len(files):
            return
        vectors = self.own.vectors(files[0], files[-1])
        first = self.other.files()[0]
        queries = self.other.vectors(first, first)  # a random sample, since texts are dealt by hash
        wanted = self.settings.index
        factory = choose_index(wanted, len(self.other), len(vectors), dim=vectors.dim) or "Flat"
        settings = replace(self.settings, memory=Size(1 << 40))  # not divided further
        path = self.own.path("index", rank)
        with temporary_folder(path) as folder:
            index = Index(factory, vectors, folder, settings)
            (written,) = folder.glob("*.faiss")
            in_memory = faiss.read_index(str(written))  # a memory map cannot be written
            index.parts = [(0, in_memory)]
            effort = find_effort(queries, index, settings.neighbors, settings=settings)
            with atomic(path) as file:
                faiss.write_index(in_memory, faiss.PyCallbackIOWriter(file.write))
        logger.info(f"{path}: {factory}, {effort}")


class SearchVectors(MiningStep):
    """Find the neighbors of each sentence of a side on the other side.

    For the sentences of a file, a task searches all indexes, one after another. Then it computes
    the cosines of the best candidates from their vectors, as `mine` does. Memory: the queries of a
    file, and an index or the vectors of a file.

    Args:
        folder: Folder that all steps of mining share.
        side: Side of the queries, `source` or `target`.
        settings: Options of `mine`; `neighbors` is used.

    Example:
        >>> from st_paragram import MiningSettings
        >>> from st_paragram.distributed import SearchVectors
        >>> pipeline = [SearchVectors("mining", "source", MiningSettings(neighbors=4))]
    """

    name = "🔎 Search"

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the neighbors of the sentences of each file of a task."""
        for file in self.own.files()[rank::world_size]:
            vectors = self.own.vectors(file, file)
            neighbors = self._neighbors(vectors.rows(0, len(vectors)))
            cosines = neighbors.similarities.ravel()
            numbers = neighbors.indices.ravel()
            table = pa.table({"cosine": cosines, "number": numbers})
            write_table(table, self.own.path("neighbors", file))
            means = pa.table({"mean": neighbors.means})
            write_table(means, self.own.path("means", file))

    def _neighbors(self, queries: Vectors) -> Neighbors:
        k = min(self.settings.neighbors, len(self.other))
        parts = self._candidates(queries, k + _SPARE)
        candidates = united(parts, len(queries), k + _SPARE).indices
        cosines = np.full(candidates.shape, NONE, np.float32)
        for file in self.other.files():
            begin, end = self.other.begins[file : file + 2]
            is_here = (begin <= candidates) & (candidates < end)
            rows = np.where(is_here, candidates - begin, -1)
            vectors = self.other.vectors(file, file)
            np.maximum(cosines, vectors.cosines(queries, rows), out=cosines)
        return nearest_by(cosines, candidates, k)

    def _candidates(self, queries: Vectors, count: int) -> Iterator[tuple[int, Neighbors]]:
        """Yield the candidates of blocks of queries in each index, as for `united`."""
        indexed = 0
        for path in self.other.paths("index"):
            index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
            for begin, end in blocks(len(queries), _QUERIES):
                scores, rows = index.search(queries[begin:end], count)
                scores[rows < 0] = -np.inf
                yield begin, Neighbors(scores, np.where(rows < 0, -1, rows + indexed))
            indexed += index.ntotal
        if indexed != len(self.other):
            raise MiningError(
                f"{counted(indexed, 'vector')} in {self.folder / 'index'}, but not those of all"
                " sentences; remove the folder and run IndexVectors again"
            )
