"""A step that searches the neighbors of sentences through all files of an index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from st_paragram.core.extras import require
from st_paragram.core.files import atomic
from st_paragram.errors import MiningError
from st_paragram.tools.distributed.base import PURPOSE, STEP
from st_paragram.tools.distributed.folder import Numbers, Side, other_side
from st_paragram.tools.neighbors.exact import exact
from st_paragram.tools.neighbors.results import NONE, Neighbors, Vectors, joined, united
from st_paragram.tools.neighbors.vectors import blocks

_SPARE = 28  # candidates in addition to the neighbors, as in `mine`
_SEARCHED = 1 << 13  # queries searched at a time
_SAMPLE = 64  # queries of a file that are also searched exactly


class SearchVectors(STEP):
    """Find the neighbors of each sentence of a side on the other side.

    A task searches all files of the index, one after another, for the queries of a file. Then it
    computes the cosines of the best candidates from their vectors, as `mine` does. Memory: the
    queries of a file, and a file of the index or of vectors. The statistic `recall` is the share of
    sampled queries whose nearest neighbor was found.

    Args:
        folder: Folder of the mining steps.
        side: Side of the queries, `source` or `target`.
        neighbors: Number of neighbors per sentence.
    """

    type = "🔎 - INDEX"
    name = "🔎 Search"

    def __init__(self, folder: str | Path, side: str, neighbors: int = 4) -> None:
        """Check the side."""
        super().__init__()
        self.folder = Path(folder)
        self.side = side
        self.corpus = other_side(side)
        self.neighbors = neighbors

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write the neighbors of the sentences of each file of a task."""
        side = Side(self.folder, self.side)
        corpus = Side(self.folder, self.corpus)
        count = min(self.neighbors + _SPARE, len(corpus))
        for file in range(rank, len(side.paths), world_size):
            rows = side.vectors(file)
            queries = rows.rows(0, len(rows))
            with self.track_time("file"):
                parts = self._candidates(queries, corpus, count)
                candidates = united(parts, len(queries), count).indices
                neighbors = self._ranked(queries, corpus, candidates)
            path = self.folder / "neighbors" / self.side / f"{side.paths[file].stem}.npz"
            with atomic(path) as output:
                np.savez(output, cosines=neighbors.similarities, numbers=neighbors.indices)

    def _candidates(
        self, queries: Vectors, corpus: Side, count: int
    ) -> Iterator[tuple[int, Neighbors]]:
        """Yield the candidates in each file of the index, as for `united`."""
        faiss = require("faiss", "mining", PURPOSE)
        folder = self.folder / "index" / self.corpus
        trained = faiss.read_index(str(folder / "trained.faiss"))
        is_ivf = isinstance(trained, faiss.IndexIVF)
        if is_ivf:  # all files have the same lists
            list_scores, lists = trained.quantizer.search(queries, trained.nprobe)
        for file, path in enumerate(corpus.paths):
            index_path = folder / f"{path.stem}.faiss"
            index = faiss.read_index(str(index_path), faiss.IO_FLAG_MMAP)
            begin, end = corpus.begins[file : file + 2]
            if index.ntotal != end - begin:
                raise MiningError(
                    f"{index_path} has {index.ntotal} vectors, but {path} has {end - begin}; run"
                    " AddVectors again"
                )
            parts = []
            for first, last in blocks(len(queries), _SEARCHED):
                block = queries[first:last]
                if is_ivf:
                    scores, rows = index.search_preassigned(
                        block, count, lists[first:last], list_scores[first:last]
                    )
                else:
                    scores, rows = index.search(block, count)
                parts.append(
                    Neighbors(
                        np.where(rows < 0, -np.inf, scores), np.where(rows < 0, -1, rows + begin)
                    )
                )
            if parts:
                yield 0, joined(parts)

    def _ranked(self, queries: Vectors, corpus: Side, candidates: Numbers) -> Neighbors:
        """Return the nearest candidates by exact cosines, and count the recall of a sample."""
        cosines = np.full(candidates.shape, NONE, np.float32)
        sample = queries[:_SAMPLE]
        nearest = np.full(len(sample), NONE, np.float32)
        for file, places in corpus.places(candidates):
            vectors = corpus.vectors(file)
            rows = np.where(places, candidates - corpus.begins[file], -1)
            np.maximum(cosines, vectors.cosines(queries, rows), out=cosines, where=places)
            best = exact(sample, vectors, 1).similarities[:, 0]
            nearest = np.maximum(nearest, best)
        order = np.lexsort((candidates, -cosines), axis=1)[:, : self.neighbors]
        neighbors = Neighbors(cosines, np.maximum(candidates, 0)).at(order)
        if len(sample):
            found = neighbors.similarities[: len(sample), 0] >= nearest
            self.stat_update("recall", value=float(found.mean()))
        return neighbors
