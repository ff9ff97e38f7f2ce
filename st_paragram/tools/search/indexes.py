"""Which faiss index to search with, and how to build, widen and search it."""

from __future__ import annotations

import math
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.extras import require
from st_paragram.core.threads import usable_cores
from st_paragram.errors import MiningError, SettingsError, one_line
from st_paragram.tools.search.settings import AUTO, FLAT
from st_paragram.tools.search.vectors import StoredVectors, blocks

_EXACT_WORK = 1e13  # multiplications of an exact search that takes minutes on two cores
_TRAINING_ROWS_A_LIST = 40  # faiss asks for 39
_ADD_ROWS = 1 << 16
_ROUNDS = 10  # of k-means


def choose_index(wanted: str, queries: int, corpus: int, dim: int) -> str:
    """The factory string of an index.

    Args:
        wanted: `SearchSettings.index`.
        queries: Number of queries.
        corpus: Number of rows that are searched.
        dim: Components of a vector.
    """
    if wanted != AUTO:
        return wanted
    if queries * corpus * dim <= _EXACT_WORK:
        return FLAT
    lists = 1 << round(math.log2(2 * math.sqrt(corpus)))
    return f"IVF{lists},PQ{_subvectors(dim)}x4fs"


def _subvectors(dim: int) -> int:
    """Into how many parts vectors are cut, each of which becomes 4 bits: parts of four components.

    Measured on a million sentences a side, embeddings of 300 components: as many neighbors are found as with whole
    vectors in the lists, at a fraction of the time, since what is found is ranked by the stored vectors anyway.
    """
    return next(parts for parts in range(max(dim // 4, 1), 0, -1) if dim % parts == 0)


def rows_in(memory: int, dim: int) -> int:
    """Rows of an index of half-precision numbers that fit into half of the memory."""
    return max(1, memory // 2 // (2 * dim + 16))


def build(factory: str, vectors: StoredVectors, begin: int, end: int, seed: int) -> Any:  # noqa: ANN401
    """Train an index on a sample of the rows `begin` to `end`, and add them all; ids are rows less `begin`.

    Runs on all cores, for every caller: rounding, hence the index, must not depend on how work is shared.

    Raises:
        SettingsError: faiss does not know the factory string, or there are too few rows for it.
        MissingExtraError: faiss is not installed.
    """
    faiss = import_faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(usable_cores())
    try:
        return _build(factory, vectors, begin, end, seed)
    finally:
        faiss.omp_set_num_threads(before)


def new_index(factory: str, dim: int) -> Any:  # noqa: ANN401
    """An index without rows.

    Raises:
        SettingsError: faiss does not know the factory string.
        MissingExtraError: faiss is not installed.
    """
    faiss = import_faiss()
    try:
        return faiss.index_factory(dim, factory, faiss.METRIC_INNER_PRODUCT)
    except RuntimeError as error:
        reason = str(error).strip().split("\n")[0]
        raise SettingsError(f"index {factory!r}: faiss cannot make it ({reason}); give another, or Flat") from error


def _build(factory: str, vectors: StoredVectors, begin: int, end: int, seed: int) -> Any:  # noqa: ANN401
    faiss, index = import_faiss(), new_index(factory, vectors.dim)
    if not index.is_trained:
        ivf = faiss.try_extract_index_ivf(index)
        lists = 256 if ivf is None else ivf.nlist
        if ivf is not None:
            ivf.cp.niter = _ROUNDS
        if end - begin < lists:
            seen = f"index {factory!r} has {lists} lists, but there are {end - begin} sentences"
            raise SettingsError(f"{seen}; give fewer lists, or Flat")
        sample = np.random.default_rng(seed).permutation(end - begin)[: lists * _TRAINING_ROWS_A_LIST]
        index.train(vectors.take(np.sort(sample) + begin))
    for first, last in blocks(end - begin, _ADD_ROWS):
        index.add(vectors.rows(begin + first, begin + last))
    return index


def write(index: Any, path: Path) -> None:  # noqa: ANN401
    """Write an index.

    Raises:
        OSError: The disk is full, or the place cannot be written to.
    """
    try:
        import_faiss().write_index(index, str(path))
    except RuntimeError as error:  # what faiss raises
        raise OSError(str(error).strip().split("\n")[-1]) from error


def read(path: Path) -> Any:  # noqa: ANN401
    """Read an index, mapped where faiss can do that.

    Raises:
        MiningError: It is damaged.
    """
    faiss = import_faiss()
    try:
        return faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
    except (RuntimeError, MemoryError) as error:  # it takes as much memory as the file asks for
        reason = one_line(str(error).strip().split("\n")[-1])
        raise MiningError(f"{path}: no index that faiss can read ({reason}); build it again") from error


def most_effort(index: Any) -> float:  # noqa: ANN401
    """The effort beyond which nothing more is found: the number of lists; without lists, no limit is known."""
    lists = import_faiss().try_extract_index_ivf(index)
    return math.inf if lists is None else int(lists.nlist)


def set_effort(index: Any, effort: int) -> None:  # noqa: ANN401
    """Look at so many lists (IVF) or nodes (HNSW) for a query; nothing for an exact index."""
    faiss = import_faiss()
    if (lists := faiss.try_extract_index_ivf(index)) is not None:
        lists.nprobe = min(effort, lists.nlist)
    elif hasattr(inner := faiss.downcast_index(index), "hnsw"):
        inner.hnsw.efSearch = effort


def import_faiss() -> ModuleType:
    """The module faiss.

    Raises:
        MissingExtraError: It is not installed.
    """
    return require("faiss", "mining", "a search through an index")


def search(index: Any, queries: NDArray[np.float32], count: int) -> NDArray[np.int64]:  # noqa: ANN401
    """Rows of the index near each query, int64 (n, count), -1 where it found no more; in no particular order.

    Raises:
        MiningError: The index is damaged, so that faiss fails or names rows that it has not.
    """
    try:
        _, indices = index.search(queries, count)
    except (RuntimeError, MemoryError) as error:
        raise MiningError(f"faiss cannot search its index ({one_line(error)}); build the index again") from error
    rows = np.asarray(indices, dtype=np.int64)
    if rows.size and not -1 <= rows.min() <= rows.max() < index.ntotal:
        raise MiningError(f"faiss found rows outside an index of {index.ntotal:,}, so it is damaged; build it again")
    return rows
