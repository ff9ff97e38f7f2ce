"""What an index that is not exact saves and what it loses: recall against speed, by the effort."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from st_paragram.core.data.lines import read_lines
from st_paragram.tools.search import indexes
from st_paragram.tools.search.effort import EFFORTS, recall
from st_paragram.tools.search.exact import exact
from st_paragram.tools.search.neighbours import Neighbours
from st_paragram.tools.search.settings import AUTO, FLAT
from st_paragram.tools.search.stored_search import approximate
from st_paragram.tools.search.vectors import StoredVectors, VectorType, blocks, pack

HEAD = ("index", "MB", "build, s", "effort", "recall", "queries/s", "times as fast")
_SHARD = 1 << 14
_MANY = 1 << 40  # queries: too many for an exact search
_PART = 1 << 16  # rows of an exact search at a time
_ENOUGH = 0.9995  # recall from which on no further effort is of interest


@dataclass(frozen=True)
class IndexPoint:
    """An index searched with one effort.

    Attributes:
        index: Its factory string.
        size: Bytes on disk; of an exact search, of the vectors.
        build_seconds: Of training and filling it, and of writing it.
        effort: Lists (IVF) or nodes (HNSW) that are looked at; None where there is nothing to choose.
        recall: Share of the true k nearest that are found (recall at k).
        queries_per_second: With the cosines of what is found computed again, as mining does; of an exact search with
            the vectors brought to single precision once for all queries.
    """

    index: str
    size: int
    build_seconds: float
    effort: int | None
    recall: float
    queries_per_second: float


def default_factories(rows: int, dim: int) -> list[str]:
    """Indexes worth comparing for so many rows: the one mining would take, IVF of whole and 8-bit numbers, PQ, HNSW.

    "np" leaves out faiss' training for polysemous codes, which takes seconds a byte of the code and is of no use here.
    """
    lists = 1 << round(np.log2(4 * np.sqrt(rows)))
    chosen = indexes.choose_index(AUTO, _MANY, rows, dim)
    parts = next(parts for parts in range(min(64, max(dim // 4, 1)), 0, -1) if dim % parts == 0)
    return [chosen, *(f"IVF{lists},{coded}" for coded in ("Flat", "SQ8", f"PQ{parts}np")), "HNSW32"]


def embed_text(model: Any, text: Path, folder: Path) -> StoredVectors:  # noqa: ANN401
    """Embed a text, a sentence a line, into shards of half-precision numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    paths, lines = list[Path](), list(read_lines(str(text)))
    for begin, end in blocks(len(lines), _SHARD):
        vectors = model.encode(lines[begin:end], show_progress_bar=False)
        paths.append(folder / f"{len(paths):05d}.npy")
        np.save(paths[-1], pack(vectors, VectorType.FLOAT16, str(text)))
    return StoredVectors(tuple(paths))


def compare_indexes(
    corpus: StoredVectors,
    queries: StoredVectors,
    factories: Sequence[str],
    folder: Path,
    k: int = 4,
    sample: int = 2000,
    rounds: int = 3,
) -> Iterator[IndexPoint]:
    """Search a corpus exactly, then with every index and growing effort.

    Args:
        corpus: Rows to search.
        queries: Of which a sample is searched for.
        factories: Of the indexes.
        folder: For one index at a time.
        k: Neighbours.
        sample: Queries.
        rounds: Of each search, of which the fastest counts.
    """
    rows = np.random.default_rng(0).permutation(len(queries))[:sample]
    chosen = queries.take(np.sort(rows))
    true, seconds = _timed(partial(exact, chosen, corpus, k, _PART), rounds)
    yield IndexPoint(FLAT, 2 * corpus.dim * len(corpus), 0.0, None, 1.0, len(chosen) / seconds)
    path = folder / "index.faiss"
    for factory in factories:
        started = time.perf_counter()
        indexes.write(indexes.build(factory, corpus, 0, len(corpus), 0), path)
        built = time.perf_counter() - started
        index = indexes.read(path)
        for effort in EFFORTS:
            found, seconds = _timed(partial(approximate, chosen, corpus, [(0, index)], k, effort), rounds)
            share = recall(found, true)
            yield IndexPoint(factory, path.stat().st_size, built, effort, share, len(chosen) / seconds)
            if share >= _ENOUGH:
                break
        path.unlink()


def index_rows(points: Sequence[IndexPoint]) -> list[list[str]]:
    """Rows of a table under `HEAD`; the first point is the exact search."""
    return [
        [
            point.index,
            f"{point.size / 1e6:,.0f}",
            f"{point.build_seconds:.1f}",
            "-" if point.effort is None else str(point.effort),
            f"{point.recall:.4f}",
            f"{point.queries_per_second:,.0f}",
            f"{point.queries_per_second / points[0].queries_per_second:.1f}",
        ]
        for point in points
    ]


def _timed(search: Callable[[], Neighbours], rounds: int) -> tuple[Neighbours, float]:
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        found = search()
        times.append(time.perf_counter() - started)
    return found, min(times)
