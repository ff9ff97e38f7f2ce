"""Search through faiss indexes of any kind.

An index finds candidates. Their cosines are computed again from what is stored, and the k best taken, of equally near
ones the earlier row: what is found depends on the index, but no cosine does.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.extras import require
from st_paragram.errors import MiningError, SettingsError, one_line
from st_paragram.tools.neighbors.exact import ranked
from st_paragram.tools.neighbors.results import Neighbors, Vectors
from st_paragram.tools.neighbors.settings import AUTO, SearchSettings
from st_paragram.tools.neighbors.vectors import Rows, blocks
from st_paragram.tools.work import make

_EXACT_WORK = 1e13  # multiplications of an exact search that takes minutes on two cores
_TRAINING_ROWS_A_LIST = 40  # faiss asks for 39
_ADD_ROWS = 1 << 16
_QUERIES = 1 << 10  # searched together
_ROUNDS = 10  # of k-means
_SPARE = 28  # candidates beyond k: codes of a few bits order them roughly


def choose_index(wanted: str, queries: int, corpus: int, dim: int) -> str | None:
    """The factory string of an index, None for an exact search without one.

    Measured on a million sentences a side, embeddings of 300 components: with vectors cut into parts of four
    components, of which each becomes 4 bits, as many neighbors are found as with whole vectors in the lists, at a
    fraction of the time, since what is found is ranked by the stored vectors anyway.

    Args:
        wanted: `SearchSettings.index`.
        queries: Number of queries.
        corpus: Number of rows that are searched.
        dim: Components of a vector.
    """
    if wanted != AUTO:
        return wanted
    if queries * corpus * dim <= _EXACT_WORK:
        return None
    lists = 1 << round(math.log2(2 * math.sqrt(corpus)))
    parts = next(parts for parts in range(max(dim // 4, 1), 0, -1) if dim % parts == 0)
    return f"IVF{lists},PQ{parts}x4fs"


class Index:
    """faiss indexes of neighboring parts of a corpus, each of which fits into half of the memory.

    Attributes:
        factory: The factory string of all.
        corpus: The rows.
        parts: For each part the row it begins at, and its index, mapped where faiss can do that.
    """

    def __init__(self, factory: str, corpus: Rows, folder: Path, settings: SearchSettings) -> None:
        """Build the indexes that are not in the folder, which should be named by all that they depend on.

        Args:
            factory: What faiss's `index_factory` takes.
            corpus: m rows.
            folder: For the files.
            settings: `memory` and `seed` count.
        """
        self.factory, self.corpus = factory, corpus
        most = max(1, settings.memory // 2 // (2 * corpus.dim + 16))
        size = -(-len(corpus) // -(-len(corpus) // most))  # equal sizes: a small last part would not fill its lists
        self.parts: list[tuple[int, Any]] = []
        for begin, end in blocks(len(corpus), size):
            path = make(folder / f"{begin:09d}.faiss", partial(self._build, begin, end, settings.seed))
            self.parts.append((begin, read(path)))

    def _build(self, begin: int, end: int, seed: int, path: Path) -> None:
        """Train an index on a sample of rows, add them all, and write it; its ids are rows less `begin`."""
        faiss = import_faiss()
        try:
            index = faiss.index_factory(self.corpus.dim, self.factory, faiss.METRIC_INNER_PRODUCT)
        except RuntimeError as error:
            reason = str(error).strip().split("\n")[0]
            raise SettingsError(f"index {self.factory!r}: faiss cannot make it ({reason}); give another") from error
        if not index.is_trained:
            ivf = faiss.try_extract_index_ivf(index)
            lists = 256 if ivf is None else ivf.nlist
            if ivf is not None:
                ivf.cp.niter = _ROUNDS
            if end - begin < lists:
                seen = f"index {self.factory!r} has {lists} lists, but there are {end - begin} sentences"
                raise SettingsError(f"{seen}; give fewer lists, or Flat")
            sample = np.random.default_rng(seed).permutation(end - begin)[: lists * _TRAINING_ROWS_A_LIST]
            index.train(self.corpus.take(np.sort(sample) + begin))
        for first, last in blocks(end - begin, _ADD_ROWS):
            index.add(self.corpus.rows(begin + first, begin + last))
        try:
            faiss.write_index(index, str(path))
        except RuntimeError as error:  # what faiss raises where the disk is full
            raise OSError(str(error).strip().split("\n")[-1]) from error

    @property
    def most_effort(self) -> float:
        """The effort beyond which nothing more is found: the number of lists; without lists, no limit is known."""
        lists = [import_faiss().try_extract_index_ivf(index) for _, index in self.parts]
        return max(math.inf if each is None else each.nlist for each in lists)

    def set_effort(self, effort: int) -> None:
        """Look at so many lists (IVF) or nodes (HNSW) for a query; nothing changes for other kinds."""
        faiss = import_faiss()
        for _, index in self.parts:
            if (lists := faiss.try_extract_index_ivf(index)) is not None:
                lists.nprobe = min(effort, lists.nlist)
            elif hasattr(inner := faiss.downcast_index(index), "hnsw"):
                inner.hnsw.efSearch = effort

    def search(self, queries: Vectors, k: int) -> Neighbors:
        """Neighbors of queries, float32 (n, D) of length 1; fewer than k where the indexes find no more."""
        return ranked(queries, self.corpus, self.candidates(queries, k + _SPARE), k)

    def candidates(self, queries: Vectors, count: int) -> NDArray[np.int64]:
        """Rows near each query, of each part `count` if there are as many: int64 (n, c), -1 for none, in any order."""
        found = []
        for begin, index in self.parts:
            asked = [queries[first:last] for first, last in blocks(len(queries), _QUERIES)]
            rows = np.concatenate([index.search(each, min(count, index.ntotal))[1] for each in asked])
            found.append(np.where(rows < 0, -1, rows + begin))
        return np.concatenate(found, axis=1)


def read(path: Path) -> Any:  # noqa: ANN401
    """Read an index."""
    faiss = import_faiss()
    try:
        return faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
    except (RuntimeError, MemoryError) as error:  # it takes as much memory as the file asks for
        reason = one_line(str(error).strip().split("\n")[-1])
        raise MiningError(f"{path}: no index that faiss can read ({reason}); remove it and start again") from error


def import_faiss() -> ModuleType:
    """The module faiss."""
    return require("faiss", "mining", "a search through an index")
