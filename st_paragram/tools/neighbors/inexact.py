"""Search with faiss indexes of any kind, and the choice of their search effort.

An index finds candidates. Their cosines are computed again from the stored vectors, and the k best
are returned, with ties in the order of rows: the neighbors found depend on the index, but their
cosines do not.

Recall is measured on a sample of queries, by comparison with exact search: it is the share of
queries whose nearest row is found. The effort is chosen by it, since the best pairs matter most.
The share of the k nearest rows that are found is also reported. It is lower, and matters for uses
of all k, such as the background of a margin. Equally near rows are interchangeable in both.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.extras import require
from st_paragram.core.formatting import counted
from st_paragram.errors import MiningError, SettingsError, one_line
from st_paragram.tools.neighbors.exact import exact, ranked
from st_paragram.tools.neighbors.results import Neighbors, Vectors
from st_paragram.tools.neighbors.settings import AUTO, SearchSettings
from st_paragram.tools.neighbors.vectors import Rows, blocks
from st_paragram.tools.work import make

logger = logging.getLogger(__name__)

_EXACT_WORK = 1e13  # multiplications of an exact search that takes minutes on two cores
_TRAINING_ROWS_A_LIST = 40  # faiss asks for 39
_ROWS_FOR_CODES = 256  # clusters of most codes, such as PQ16, of an index without lists
_ADD_ROWS = 1 << 16
_QUERIES = 1 << 10  # searched together
_ROUNDS = 10  # of k-means
_SPARE = 28  # candidates in addition to k, since codes of a few bits order them only roughly
_EFFORTS = (4, 8, 16, 32, 64, 128, 256, 512)  # the first with enough recall is used
_SAMPLE = 1000  # queries
_PLACE = re.compile(r"^Error in .*? at \S+:\d+: (?:Error: '.*?' failed: ?)?")


def choose_index(wanted: str, queries: int, corpus: int, dim: int) -> str | None:
    """Return the factory string of an index; None for exact search.

    Measured on a million sentences per side, with embeddings of 300 dimensions: if vectors are
    divided into parts of four dimensions with 4 bits each, as many neighbors are found as with
    whole vectors in the lists, in a fraction of the time, since candidates are ranked by the stored
    vectors anyway.

    `wanted` is `SearchSettings.index`; there are `queries` and `corpus` rows with `dim` dimensions.
    """
    if wanted != AUTO:
        return wanted
    if queries * corpus * dim <= _EXACT_WORK:
        return None
    lists = 1 << round(math.log2(2 * math.sqrt(corpus)))
    parts = next(parts for parts in range(max(dim // 4, 1), 0, -1) if dim % parts == 0)
    return f"IVF{lists},PQ{parts}x4fs"


class Index:
    """faiss indexes of consecutive parts of a corpus, each of which fits into half of the memory.

    Attributes:
        factory: The factory string of all indexes.
        corpus: The rows.
        parts: For each part, its first row and its index, memory-mapped if faiss can do that.
    """

    def __init__(self, factory: str, corpus: Rows, folder: Path, settings: SearchSettings) -> None:
        """Build the indexes that are not in the folder, whose name should depend on everything that
        affects them.

        Args:
            factory: Factory string for faiss's `index_factory`.
            corpus: m rows.
            folder: Folder for the files.
            settings: `memory` and `seed` are used.
        """
        self.factory, self.corpus = factory, corpus
        most = max(1, settings.memory // 2 // (2 * corpus.dim + 16))
        # equal sizes: a small last part would not fill its lists
        size = -(-len(corpus) // -(-len(corpus) // most))
        self.parts: list[tuple[int, Any]] = []
        for begin, end in blocks(len(corpus), size):
            path, faiss = (
                make(
                    folder / f"{begin:09d}.faiss", partial(self._build, begin, end, settings.seed)
                ),
                _faiss(),
            )
            try:
                self.parts.append((begin, faiss.read_index(str(path), faiss.IO_FLAG_MMAP)))
            # a damaged file may ask for any amount of memory
            except (RuntimeError, MemoryError) as error:
                seen = f"not an index that faiss can read ({_reason(error)})"
                raise MiningError(f"{path}: {seen}; remove it and start again") from error

    def _build(self, begin: int, end: int, seed: int, path: Path) -> None:
        """Train an index on a sample of rows, add all rows, and write it; its ids are rows minus
        `begin`.
        """
        faiss = _faiss()
        with self._refused(f"cannot be built from {counted(end - begin, 'sentence')}"):
            index = faiss.index_factory(self.corpus.dim, self.factory, faiss.METRIC_INNER_PRODUCT)
            if not index.is_trained:
                self._train(index, begin, end, seed)
            for first, last in blocks(end - begin, _ADD_ROWS):
                index.add(self.corpus.rows(begin + first, begin + last))
        try:
            faiss.write_index(index, str(path))
        except RuntimeError as error:  # raised by faiss if the disk is full
            raise OSError(_reason(error)) from error

    def _train(self, index: Any, begin: int, end: int, seed: int) -> None:
        rows = end - begin
        clusters = _ROWS_FOR_CODES
        if (ivf := _faiss().try_extract_index_ivf(index)) is not None:
            clusters = ivf.nlist
            ivf.cp.niter = _ROUNDS
            if rows < clusters:
                seen = (
                    f"index {self.factory!r} has {counted(clusters, 'list')}, but there are {rows}"
                    " sentences"
                )
                raise SettingsError(f"{seen}; give fewer lists, or Flat")
        sample = np.random.default_rng(seed).permutation(rows)[: clusters * _TRAINING_ROWS_A_LIST]
        index.train(self.corpus.take(np.sort(sample) + begin))

    @contextmanager
    def _refused(self, what: str) -> Iterator[None]:
        """Turn the errors of faiss, and missing memory, into one line that names the index."""
        try:
            yield
        except (RuntimeError, MemoryError) as error:
            advice = "give another index, or Flat"
            raise SettingsError(
                f"index {self.factory!r} {what}: {_reason(error)}; {advice}"
            ) from error

    @property
    def most_effort(self) -> float:
        """The maximum useful effort: the number of lists; without lists, no limit is known."""
        lists = [_faiss().try_extract_index_ivf(index) for _, index in self.parts]
        return max(math.inf if each is None else each.nlist for each in lists)

    def set_effort(self, effort: int) -> None:
        """Set the number of lists (IVF) or nodes (HNSW) visited per query; no effect on other
        kinds.
        """
        faiss = _faiss()
        for _, index in self.parts:
            if (lists := faiss.try_extract_index_ivf(index)) is not None:
                lists.nprobe = min(effort, lists.nlist)
            elif hasattr(inner := faiss.downcast_index(index), "hnsw"):
                inner.hnsw.efSearch = effort

    def search(self, queries: Vectors, k: int) -> Neighbors:
        """Find neighbors of queries, float32 (n, D), unit vectors; fewer than k if the indexes do
        not find more.
        """
        return ranked(queries, self.corpus, self.candidates(queries, k + _SPARE), k)

    def candidates(self, queries: Vectors, count: int) -> NDArray[np.int64]:
        """Find up to `count` rows near each query in each part: int64 (n, c), -1 for none, in any
        order.
        """
        found = []
        for begin, index in self.parts:
            asked = [queries[first:last] for first, last in blocks(len(queries), _QUERIES)]
            most = min(count, index.ntotal)
            with self._refused("cannot be searched"):
                rows = np.concatenate([index.search(block, most)[1] for block in asked])
            found.append(np.where(rows < 0, -1, rows + begin))
        return np.concatenate(found, axis=1)


def _reason(error: Exception) -> str:
    """Return the message of an error of faiss in one line, without the place in its source code."""
    message = " ".join(str(error).split())
    return one_line(_PLACE.sub("", message) or type(error).__name__)


def _faiss() -> ModuleType:
    return require("faiss", "mining", "a search through an index")


@dataclass(frozen=True)
class Effort:
    """The search effort of an index, and its recall.

    Attributes:
        effort: See `Index.set_effort`.
        recall: Share of a sample of queries whose nearest row is found.
        recall_at_k: Share of their `k` nearest rows that are found.
        tried: Effort -> both recalls, for every effort that was tried.
        wanted: Recall that was asked for.
    """

    effort: int
    recall: float
    recall_at_k: float
    k: int
    tried: dict[str, tuple[float, float]]
    wanted: float = 0.0

    def __str__(self) -> str:
        """Format as "effort 8, finds the nearest neighbor of 95.1 % of a sample, and 84.0 % of its
        nearest 4".
        """
        nearest = f"finds the nearest neighbor of {100 * self.recall:.1f} % of a sample"
        missed = f" ({100 * self.wanted:.1f} % wanted)" if self.recall < self.wanted else ""
        return (
            f"effort {self.effort}, {nearest}{missed}, and {100 * self.recall_at_k:.1f} % of its"
            f" nearest {self.k}"
        )


def find_effort(
    queries: Rows, index: Index, k: int, settings: SearchSettings, own: bool = False
) -> Effort:
    """Set the minimum effort with enough recall (`settings.recall`) on a sample of the queries, or
    the maximum.

    A warning says if no effort has enough recall. Each query has `k` neighbors, or fewer if there
    are fewer rows. `own`: the queries are the rows of the corpus, and each is left out of its own
    neighbors.
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
    result = Effort(effort, *tried[str(effort)], k=k, tried=tried, wanted=settings.recall)
    if result.recall < settings.recall:
        seen = (
            f"finds the nearest neighbor of only {100 * result.recall:.1f} % of a sample at its"
            " maximum effort"
        )
        wanted = f"{100 * settings.recall:.1f} % are wanted (--recall)"
        logger.warning(f"index {index.factory} {seen}, but {wanted}; --index Flat finds all")
    return result


def recall(found: Neighbors, true: Neighbors) -> float:
    """Return the share of the k true neighbors of each query that were found; equally near rows are
    interchangeable.
    """
    return float((found.similarities >= true.similarities[:, -1:]).mean())
