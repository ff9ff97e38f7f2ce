"""A step that searches the neighbors of sentences through all files of an index."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from st_paragram.core.files import atomic
from st_paragram.errors import MiningError
from st_paragram.tools.distributed.mining import FAISS, MiningStep, Numbers, Side, trained_index
from st_paragram.tools.neighbors.exact import exact
from st_paragram.tools.neighbors.results import NONE, Neighbors, Vectors, united
from st_paragram.tools.neighbors.vectors import blocks

_SPARE = 28  # candidates in addition to the neighbors, as in `mine`
_SEARCHED = 1 << 13  # queries searched at a time
_SAMPLE = 64  # queries of a file that are also searched exactly


class SearchVectors(MiningStep):
    """Find the neighbors of each sentence of a side on the other side.

    For the sentences of a file, a task searches all files of the index, one after another. Then it
    computes the cosines of the best candidates from their vectors, as `mine` does. Memory: the
    queries of a file, and a file of the index or of vectors. The statistics count sampled queries,
    and those whose nearest neighbor was found.

    Args:
        folder: Folder that all steps of mining share.
        side: Side of the queries, `source` or `target`.
        settings: Options of `mine`; `neighbors` is used.
    """

    name = "🔎 Search"

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the neighbors of the sentences of each file of a task."""
        side = Side(self.folder, self.side)
        corpus = Side(self.folder, self.other_side)
        count = min(self.settings.neighbors + _SPARE, len(corpus))
        for file in range(rank, len(side.paths), world_size):
            rows = side.vectors(file)
            queries = rows.rows(0, len(rows))
            parts = self._candidates(queries, corpus, count)
            candidates = united(parts, len(queries), count).indices
            neighbors = self._ranked(queries, corpus, candidates)
            with atomic(side.result("neighbors", file, ".npz")) as output:
                np.savez(output, cosines=neighbors.similarities, numbers=neighbors.indices)

    def _candidates(
        self, queries: Vectors, corpus: Side, count: int
    ) -> Iterator[tuple[int, Neighbors]]:
        """Yield the candidates of blocks of queries in each file, as for `united`."""
        trained = FAISS.read_index(str(trained_index(self.folder, self.other_side)))
        is_ivf = isinstance(trained, FAISS.IndexIVF)
        if is_ivf:  # all files have the same lists
            list_scores, lists = trained.quantizer.search(queries, trained.nprobe)
        indexed = 0
        folder = self.folder / "index" / self.other_side
        for path in sorted(folder.glob("*.faiss")):
            index = FAISS.read_index(str(path), FAISS.IO_FLAG_MMAP)
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
        if indexed != len(corpus):
            raise MiningError(
                f"{folder}: {indexed:,} vectors are indexed of {len(corpus):,}; remove the folder"
                " and run AddVectors again"
            )

    def _ranked(self, queries: Vectors, corpus: Side, candidates: Numbers) -> Neighbors:
        """Return the nearest candidates by exact cosines, and count the recall of a sample."""
        cosines = np.full(candidates.shape, NONE, np.float32)
        sample = queries[:_SAMPLE]
        nearest = np.full(len(sample), NONE, np.float32)
        for file, places in corpus.places(candidates):
            vectors = corpus.vectors(file)
            rows = np.where(places, candidates - corpus.begins[file], -1)
            cosines = np.where(places, vectors.cosines(queries, rows), cosines)
            nearest = np.maximum(nearest, exact(sample, vectors, 1).similarities[:, 0])
        order = np.lexsort((candidates, -cosines), axis=1)[:, : self.settings.neighbors]
        neighbors = Neighbors(cosines, np.maximum(candidates, 0)).at(order)
        is_found = neighbors.similarities[: len(sample), 0] >= nearest
        self.stat_update("sampled queries", value=len(sample))
        self.stat_update("sampled queries with nearest neighbor", value=int(is_found.sum()))
        return neighbors
