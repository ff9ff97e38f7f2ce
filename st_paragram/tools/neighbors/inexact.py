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
from collections.abc import Iterator, Sequence
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
_STORED_LISTS = 1 / 64  # share of the lists; visiting 4 to 32 of 2,048 usually finds enough
_ROUNDS = 5  # of k-means; 10 find no more neighbors
_SPARE = 28  # candidates in addition to k, since codes of a few bits order them only roughly
# the first with enough recall is used
_EFFORTS = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
_SAMPLE = 1000  # queries
_PLACE = re.compile(r"^Error in .*? at \S+:\d+: (?:Error: '.*?' failed: ?)?")

Lists = NDArray[np.int32]


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
        lists: Nearest lists of each row, nearest first, int32 (m, l), to search with these rows.
            None if `trained` is not given, or is of another kind than that of `choose_index`.
    """

    lists: Lists | None = None

    def __init__(
        self,
        factory: str,
        corpus: Rows,
        folder: Path,
        settings: SearchSettings,
        trained: Path | None = None,
    ) -> None:
        """Build the indexes that are not in the folder.

        The name of the folder should depend on everything that affects the indexes.

        Args:
            factory: Factory string for faiss's `index_factory`.
            corpus: m rows.
            folder: Folder for the files.
            settings: `memory` and `seed` are used.
            trained: File of a trained index without rows, shared by texts that are searched in
                each other. So the nearest lists of a row are found once, to store the row and to
                search with it.
        """
        self.factory = factory
        self.corpus = corpus
        self._trained_file = trained
        if trained is not None:
            index = open_index(trained)
            # with residuals, a search would also need the nearness of the lists
            if isinstance(index, _faiss().IndexIVFPQFastScan) and not index.by_residual:
                path = make(folder / "lists", partial(self._find_lists, index))
                self.lists = np.memmap(path, np.int32, "r").reshape(len(corpus), -1)
        max_rows = max(1, settings.memory // 2 // (2 * corpus.dim + 16))
        # equal sizes: a small last part would not fill its lists
        count = math.ceil(len(corpus) / max_rows)
        self.parts: list[tuple[int, Any]] = []
        for begin, end in blocks(len(corpus), math.ceil(len(corpus) / count)):
            build = partial(self._build, begin, end, settings.seed)
            path = make(folder / f"{begin:09d}.faiss", build)
            self.parts.append((begin, open_index(path)))

    def _find_lists(self, index: Any, path: Path) -> None:
        count = math.ceil(index.nlist * _STORED_LISTS)
        with path.open("wb") as file:
            for begin, end in blocks(len(self.corpus), _ADD_ROWS):
                _, lists = index.quantizer.search(self.corpus.rows(begin, end), count)
                lists.astype(np.int32).tofile(file)

    def _build(self, begin: int, end: int, seed: int, path: Path) -> None:
        """Add rows to a trained index, and write it. Its ids are rows minus `begin`."""
        if self._trained_file is None:
            index = trained_index(self.factory, [self.corpus], seed)
        else:
            index = _faiss().read_index(str(self._trained_file))
        with refused_index(
            self.factory, f"cannot be built from {counted(end - begin, 'sentence')}"
        ):
            if self.lists is None:
                for first, last in blocks(end - begin, _ADD_ROWS):
                    index.add(self.corpus.rows(begin + first, begin + last))
                filled = index
            else:
                filled = self._filled(index, begin, self.lists[begin:end, 0])
        write_index(filled, path)

    def _filled(self, index: Any, begin: int, lists: Lists) -> Any:
        """Return an empty index with the rows from `begin` on in given lists, (n,).

        The result equals that of `add`, which would find the lists again. faiss can only add rows
        to given lists of an index whose codes are not yet packed.
        """
        faiss = _faiss()
        unpacked = faiss.IndexIVFPQ(
            index.quantizer, index.d, index.nlist, index.pq.M, index.pq.nbits, index.metric_type
        )
        unpacked.pq = index.pq
        unpacked.by_residual = False
        unpacked.is_trained = True
        for first, last in blocks(len(lists), _ADD_ROWS):
            rows = self.corpus.rows(begin + first, begin + last)
            numbers = lists[first:last].astype(np.int64)
            unpacked.add_core(len(rows), faiss.swig_ptr(rows), None, faiss.swig_ptr(numbers))
        return faiss.IndexIVFPQFastScan(unpacked, index.bbs)

    @property
    def most_effort(self) -> float:
        """The maximum useful effort: the number of lists; without lists, no limit is known."""
        efforts = []
        for _, index in self.parts:
            ivf = _faiss().try_extract_index_ivf(index)
            efforts.append(math.inf if ivf is None else ivf.nlist)
        return max(efforts)

    def set_effort(self, effort: int) -> None:
        """Set the number of lists (IVF) or nodes (HNSW) visited per query.

        It has no effect on other kinds.
        """
        self.effort = effort
        for _, index in self.parts:
            set_effort(index, effort)

    def nearest(self, queries: Vectors, k: int) -> Neighbors:
        """Compare queries, (n, D), with all rows."""
        return exact(queries, self.corpus, k)

    def search(self, queries: Vectors, k: int, lists: Lists | None = None) -> Neighbors:
        """Find up to k neighbors of queries, float32 (n, D), unit vectors.

        `lists` are `Index.lists` of the queries' own text, (n, l), if its index has them.
        """
        rows = self.candidates(queries, k + _SPARE, lists)
        return ranked(queries, self.corpus, rows, k=k)

    def candidates(
        self, queries: Vectors, count: int, lists: Lists | None = None
    ) -> NDArray[np.int64]:
        """Find up to `count` rows near each query in each part.

        `lists` are the nearest lists of the queries, (n, l), if they are known.

        Returns:
            Rows in any order, -1 for none, int64 (n, c).
        """
        if lists is not None and lists.shape[1] < self.effort:
            lists = None
        parts = []
        for begin, index in self.parts:
            max_rows = min(count, index.ntotal)
            blocks_of_rows = []
            with refused_index(self.factory, "cannot be searched"):
                for first, last in blocks(len(queries), _QUERIES):
                    block = queries[first:last]
                    if lists is None:
                        _, rows = index.search(block, max_rows)
                    else:
                        visited = lists[first:last, : self.effort].astype(np.int64)
                        nearness = np.zeros(visited.shape, np.float32)  # not used
                        _, rows = index.search_preassigned(block, max_rows, visited, nearness)
                    blocks_of_rows.append(rows)
            rows = np.concatenate(blocks_of_rows)
            parts.append(np.where(rows < 0, -1, rows + begin))
        return np.concatenate(parts, axis=1)


def trained_index(factory: str, texts: Sequence[Rows], seed: int) -> Any:
    """Make an empty index, trained on samples of the same size from each text."""
    faiss = _faiss()
    rows = min(map(len, texts))
    with refused_index(factory, f"cannot be built from {counted(rows, 'sentence')}"):
        index = faiss.index_factory(texts[0].dim, factory, faiss.METRIC_INNER_PRODUCT)
        if index.is_trained:
            return index
        clusters = _ROWS_FOR_CODES
        ivf = faiss.try_extract_index_ivf(index)
        if ivf is not None:
            clusters = ivf.nlist
            ivf.cp.niter = _ROUNDS
            if rows < clusters:
                raise SettingsError(
                    f"index {factory!r} has {counted(clusters, 'list')}, but there are {rows:,}"
                    " sentences; give fewer lists, or Flat"
                )
        share = clusters * _TRAINING_ROWS_A_LIST // len(texts)
        samples = []
        for text in texts:
            sample = np.random.default_rng(seed).permutation(len(text))[:share]
            samples.append(text.take(np.sort(sample)))
        index.train(np.concatenate(samples))
    return index


def write_index(index: Any, path: Path) -> None:
    """Write an index to a file."""
    try:
        _faiss().write_index(index, str(path))
    except RuntimeError as error:  # raised by faiss if the disk is full
        raise OSError(_reason(error)) from error


def open_index(path: Path) -> Any:
    """Open an index, memory-mapped if faiss can do that."""
    faiss = _faiss()
    try:
        return faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
    # a damaged file may ask for any amount of memory
    except (RuntimeError, MemoryError) as error:
        raise MiningError(
            f"{path}: not an index that faiss can read ({_reason(error)}); remove it and start"
            " again"
        ) from error


def set_effort(index: Any, effort: int) -> None:
    """Set the search effort of an index of faiss, see `Index.set_effort`."""
    faiss = _faiss()
    ivf = faiss.try_extract_index_ivf(index)
    inner = faiss.downcast_index(index)
    if ivf is not None:
        ivf.nprobe = min(effort, ivf.nlist)
    elif hasattr(inner, "hnsw"):
        inner.hnsw.efSearch = effort


@contextmanager
def refused_index(factory: str, what: str) -> Iterator[None]:
    """Turn the errors of faiss, and missing memory, into one line that names the index."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        raise SettingsError(
            f"index {factory!r} {what}: {_reason(error)}; give another index, or Flat"
        ) from error


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
        """Describe the effort and its recall in words."""
        nearest = f"finds the nearest neighbor of {100 * self.recall:.1f} % of a sample"
        missed = f" ({100 * self.wanted:.1f} % wanted)" if self.recall < self.wanted else ""
        return (
            f"effort {self.effort}, {nearest}{missed}, and {100 * self.recall_at_k:.1f} % of its"
            f" nearest {self.k}"
        )


def find_effort(
    queries: Rows, index: Index, k: int, settings: SearchSettings, own: bool = False
) -> Effort:
    """Set the minimum effort with enough recall on a sample of the queries, or the maximum.

    A warning says if no effort has enough recall. Each query has `k` neighbors, or fewer if there
    are fewer rows. `own`: the queries are the rows of the corpus, and each is left out of its own
    neighbors.
    """
    rows = np.sort(np.random.default_rng(settings.seed).permutation(len(queries))[:_SAMPLE])
    sample = queries.take(rows)
    k = min(k, len(index.corpus) - own)

    def without_self(neighbors: Neighbors) -> Neighbors:
        return neighbors.without_self(rows) if own else neighbors

    nearest = without_self(index.nearest(sample, k + own))
    tried: dict[str, tuple[float, float]] = {}
    for effort in _EFFORTS:
        index.set_effort(effort)
        neighbors = without_self(index.search(sample, k + own))
        recall_at_1 = recall(neighbors.nearest(1), nearest.nearest(1))
        recall_at_k = recall(neighbors, nearest)
        tried[str(effort)] = (recall_at_1, recall_at_k)
        if recall_at_1 >= settings.recall or effort >= index.most_effort:
            break
    if recall_at_1 < settings.recall:
        logger.warning(
            f"index {index.factory} finds the nearest neighbor of only {100 * recall_at_1:.1f} %"
            f" of a sample at its maximum effort, but {100 * settings.recall:.1f} % are wanted"
            " (--recall); --index Flat finds all"
        )
    return Effort(
        effort=effort,
        recall=recall_at_1,
        recall_at_k=recall_at_k,
        k=k,
        tried=tried,
        wanted=settings.recall,
    )


def recall(found: Neighbors, true: Neighbors) -> float:
    """Return the share of the k true neighbors of each query that were found.

    Equally near rows are interchangeable.
    """
    return float((found.similarities >= true.similarities[:, -1:]).mean())
