"""Search through faiss indexes of any kind, and how hard they must look.

An index finds candidates. Their cosines are computed again from what is stored, and the k best taken, of equally near
ones the earlier row: what is found depends on the index, but no cosine does.

What it finds is measured on a sample of queries, against an exact search. Recall is the share of the queries whose
nearest row is found. It decides, since pairs are taken best first. The share of their k nearest rows that are found is
also reported: it is lower, and counts where all k matter, as for the background of a margin. Equally near rows are
interchangeable in both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.extras import require
from st_paragram.errors import MiningError, SettingsError, one_line
from st_paragram.tools.neighbors.exact import exact, ranked
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
_EFFORTS = (4, 8, 16, 32, 64, 128, 256, 512)  # the first with enough recall is taken
_SAMPLE = 1000  # queries


def choose_index(wanted: str, queries: int, corpus: int, dim: int) -> str | None:
    """The factory string of an index, None for an exact search without one.

    Measured on a million sentences a side, embeddings of 300 components: with vectors cut into parts of four
    components, of which each becomes 4 bits, as many neighbors are found as with whole vectors in the lists, at a
    fraction of the time, since what is found is ranked by the stored vectors anyway.

    `wanted` is `SearchSettings.index`; there are `queries` and `corpus` rows of `dim` components.
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
            path, faiss = make(folder / f"{begin:09d}.faiss", partial(self._build, begin, end, settings.seed)), _faiss()
            try:
                self.parts.append((begin, faiss.read_index(str(path), faiss.IO_FLAG_MMAP)))
            except (RuntimeError, MemoryError) as error:  # it takes as much memory as the file asks for
                reason = one_line(str(error).strip().split("\n")[-1])
                seen = f"no index that faiss can read ({reason})"
                raise MiningError(f"{path}: {seen}; remove it and start again") from error

    def _build(self, begin: int, end: int, seed: int, path: Path) -> None:
        """Train an index on a sample of rows, add them all, and write it; its ids are rows less `begin`."""
        faiss = _faiss()
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
        lists = [_faiss().try_extract_index_ivf(index) for _, index in self.parts]
        return max(math.inf if each is None else each.nlist for each in lists)

    def set_effort(self, effort: int) -> None:
        """Look at so many lists (IVF) or nodes (HNSW) for a query; nothing changes for other kinds."""
        faiss = _faiss()
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


def _faiss() -> ModuleType:
    return require("faiss", "mining", "a search through an index")


@dataclass(frozen=True)
class Effort:
    """How hard an index looks, and what it finds.

    Attributes:
        effort: See `Index.set_effort`.
        recall: Share of a sample of queries whose nearest row is found.
        recall_at_k: Share of their `k` nearest rows that are found.
        tried: Both recalls by every effort that was tried.
    """

    effort: int
    recall: float
    recall_at_k: float
    k: int
    tried: dict[str, tuple[float, float]]

    def __str__(self) -> str:
        """In words: "effort 8, finds the nearest neighbor of 95.1 % of a sample, and 84.0 % of its nearest 4"."""
        nearest = f"finds the nearest neighbor of {100 * self.recall:.1f} % of a sample"
        return f"effort {self.effort}, {nearest}, and {100 * self.recall_at_k:.1f} % of its nearest {self.k}"


def find_effort(queries: Rows, index: Index, k: int, settings: SearchSettings, own: bool = False) -> Effort:
    """Set the least effort with enough recall (`settings.recall`) of a sample of the queries, or the most there is.

    Each has `k` neighbors, or fewer where there are fewer rows. If queries are the rows of the corpus, their `own`,
    each is left out of its own neighbors.
    """
    rows = np.sort(np.random.default_rng(settings.seed).permutation(len(queries))[:_SAMPLE])
    sample, k = queries.take(rows), min(k, len(index.corpus) - own)

    def others(neighbors: Neighbors) -> Neighbors:
        return neighbors.without_self(rows) if own else neighbors

    true, most = others(exact(sample, index.corpus, k + own)), index.most_effort
    tried: dict[str, tuple[float, float]] = {}
    for effort in _EFFORTS:
        index.set_effort(effort)
        found = others(index.search(sample, k + own))
        tried[str(effort)] = recall(found.nearest(1), true.nearest(1)), recall(found, true)
        if tried[str(effort)][0] >= settings.recall or effort >= most:
            break
    return Effort(effort, *tried[str(effort)], k, tried)


def recall(found: Neighbors, true: Neighbors) -> float:
    """Share of the k true neighbors of each query that were found; equally near rows are interchangeable."""
    return float((found.similarities >= true.similarities[:, -1:]).mean())
