"""Two steps that search through all files of an index: choose the search effort, find neighbors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from st_paragram.core.files import atomic
from st_paragram.core.formatting import counted
from st_paragram.errors import MiningError
from st_paragram.tools.distributed.base import LOGGER
from st_paragram.tools.distributed.index import write_index
from st_paragram.tools.distributed.mining import FAISS, MiningStep, Numbers, trained_index
from st_paragram.tools.neighbors.exact import exact
from st_paragram.tools.neighbors.results import NONE, Neighbors, Vectors, united
from st_paragram.tools.neighbors.vectors import blocks

_SPARE = 28  # candidates in addition to the neighbors, as in `mine`
_SEARCHED = 1 << 13  # queries searched at a time
_SAMPLE = 500  # queries that are also searched exactly
_EFFORTS = (4, 8, 16, 32, 64, 128, 256, 512)  # numbers of lists visited, as in `mine`


class SearchVectors(MiningStep):
    """Find the neighbors of each sentence of a side on the other side.

    For the sentences of a file, a task searches all files of the index, one after another. Then it
    computes the cosines of the best candidates from their vectors, as `mine` does. Memory: the
    queries of a file, and a file of the index or of vectors.

    Args:
        folder: Folder that all steps of mining share.
        side: Side of the queries, `source` or `target`.
        settings: Options of `mine`; `neighbors` is used.

    Example:
        >>> from st_paragram import MiningSettings, SearchVectors
        >>> pipeline = [SearchVectors("mining", "source", MiningSettings(neighbors=4))]
    """

    name = "🔎 Search"

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the neighbors of the sentences of each file of a task."""
        trained = FAISS.read_index(str(trained_index(self.folder, self.other_side)))
        for file in range(rank, len(self.own.paths), world_size):
            rows = self.own.vectors(file)
            neighbors = self.search(rows.rows(0, len(rows)), trained)
            with atomic(self.own.result("neighbors", file, ".npz")) as output:
                np.savez(output, cosines=neighbors.similarities, numbers=neighbors.indices)

    def search(self, queries: Vectors, trained: Any) -> Neighbors:
        """Find the neighbors of queries, with the effort of a trained index."""
        candidates = self.candidates(queries, trained)
        cosines = self.cosines(queries, candidates)
        order = np.lexsort((candidates, -cosines), axis=1)[:, : self.settings.neighbors]
        return Neighbors(cosines, np.maximum(candidates, 0)).at(order)

    def candidates(self, queries: Vectors, trained: Any) -> Numbers:
        """Find the numbers of c sentences near each of n queries, -1 for none, (n, c)."""
        count = min(self.settings.neighbors + _SPARE, len(self.other))
        parts = self._candidates_of_files(queries, trained, count)
        return united(parts, len(queries), count).indices

    def cosines(self, queries: Vectors, candidates: Numbers) -> Vectors:
        """Compute the cosines of n queries with candidates, (n, c)."""
        cosines = np.full(candidates.shape, NONE, np.float32)
        for file, places in self.other.places(candidates):
            vectors = self.other.vectors(file)
            rows = np.where(places, candidates - self.other.begins[file], -1)
            cosines = np.where(places, vectors.cosines(queries, rows), cosines)
        return cosines

    def _candidates_of_files(
        self, queries: Vectors, trained: Any, count: int
    ) -> Iterator[tuple[int, Neighbors]]:
        """Yield the candidates of blocks of queries in each file, as for `united`."""
        is_ivf = isinstance(trained, FAISS.IndexIVF)
        if is_ivf:  # all files have the same lists
            list_scores, lists = trained.quantizer.search(queries, trained.nprobe)
        indexed = 0
        folder = self.folder / "index" / self.other_side
        for path in sorted(folder.glob("*.faiss")):
            index = FAISS.read_index(str(path), FAISS.IO_FLAG_MMAP)
            if is_ivf:
                index.nprobe = trained.nprobe
            for begin, end in blocks(len(queries), _SEARCHED):
                block = queries[begin:end]
                if is_ivf:
                    scores, rows = index.search_preassigned(
                        block, count, lists[begin:end], list_scores[begin:end]
                    )
                else:
                    scores, rows = index.search(block, count)
                scores[rows < 0] = -np.inf
                yield begin, Neighbors(scores, np.where(rows < 0, -1, rows + indexed))
            indexed += index.ntotal
        if indexed != len(self.other):
            raise MiningError(
                f"{folder} has {counted(indexed, 'vector')}, but not those of all sentences; remove"
                " the folder and run AddVectors again"
            )


class TuneSearch(SearchVectors):
    """Set the minimum search effort that finds enough of the nearest neighbors. One task.

    Some sentences are compared with all sentences of the other side, and searched with several
    efforts. The log has the recall of each.

    Args:
        folder: Folder that all steps of mining share.
        side: Side of the queries, `source` or `target`.
        settings: Options of `mine`; `recall` and `neighbors` are used.

    Example:
        >>> from st_paragram import MiningSettings, TuneSearch
        >>> pipeline = [TuneSearch("mining", "source", MiningSettings(recall=0.95))]
    """

    name = "🔎 Effort"

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the trained index with the effort."""
        path = trained_index(self.folder, self.other_side)
        trained = FAISS.read_index(str(path))
        if not isinstance(trained, FAISS.IndexIVF):
            return
        queries = self.own.first_vectors(_SAMPLE)
        sample = queries.rows(0, min(_SAMPLE, len(queries)))
        nearest = np.full(len(sample), NONE, np.float32)
        for file in self.other.files:
            best = exact(sample, self.other.vectors(file), 1)
            nearest = np.maximum(nearest, best.similarities[:, 0])
        candidates = []
        for effort in _EFFORTS:
            trained.nprobe = min(effort, trained.nlist)
            candidates.append(self.candidates(sample, trained))
        cosines = self.cosines(sample, np.concatenate(candidates, axis=1))
        found = cosines.reshape(len(sample), len(_EFFORTS), -1).max(axis=2)
        recalls = (found >= nearest[:, None]).mean(axis=0)
        for effort, recall in zip(_EFFORTS, recalls, strict=True):
            LOGGER.info(f"effort {effort} finds {recall:.1%} of nearest neighbors")
        enough = np.flatnonzero(recalls >= self.settings.recall)
        effort = _EFFORTS[enough[0] if len(enough) else -1]
        trained.nprobe = min(effort, trained.nlist)
        write_index(trained, path)
