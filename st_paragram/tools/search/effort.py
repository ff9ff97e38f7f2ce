"""How hard an inexact index must look: measured on a sample of queries, against an exact search.

Recall is the share of the queries whose nearest row is found. It decides, since pairs and answers are taken best
first. The share of their k nearest rows that are found is also reported: it is lower, and counts where all k matter,
as for the background of a margin. Equally near rows are interchangeable in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from st_paragram.tools.search import indexes
from st_paragram.tools.search.exact import exact
from st_paragram.tools.search.neighbours import Neighbours
from st_paragram.tools.search.settings import SearchSettings
from st_paragram.tools.search.stored_search import approximate, without_self
from st_paragram.tools.search.vectors import Rows

#: Lists (IVF) or nodes (HNSW) looked at for a query: the first with enough recall is taken.
EFFORTS = (4, 8, 16, 32, 64, 128, 256, 512)
_SAMPLE = 1000  # queries


@dataclass(frozen=True)
class Effort:
    """How hard an index looks, and what it finds.

    Attributes:
        effort: See `indexes.set_effort`.
        recall: Share of a sample of queries whose nearest row is found.
        recall_at_k: Share of their k nearest rows that are found.
        k: Of the latter.
        tried: Both recalls by every effort that was tried.
    """

    effort: int
    recall: float
    recall_at_k: float
    k: int
    tried: dict[str, tuple[float, float]]


def find_effort(
    queries: Rows,
    corpus: Rows,
    parts: Sequence[tuple[int, Any]],
    k: int,
    settings: SearchSettings,
    part_rows: int,
    own: bool = False,
) -> Effort:
    """The least effort with enough recall, or the most there is.

    Args:
        queries: A sample of them is searched for.
        corpus: The rows that are searched.
        parts: Their indexes: for each the row it begins at, and itself.
        k: Neighbors of a query; fewer where there are fewer rows.
        settings: `recall` and `seed` count.
        part_rows: Rows in memory at a time, of the exact search.
        own: Queries are the rows of the corpus: each is left out of its own neighbors.
    """
    rows = np.sort(np.random.default_rng(settings.seed).permutation(len(queries))[:_SAMPLE])
    sample, k = queries.take(rows), min(k, len(corpus) - own)

    def others(neighbours: Neighbours) -> Neighbours:
        return without_self(neighbours, rows, k) if own else neighbours

    if k < 1:  # a single row, which is its own neighbor alone
        return Effort(EFFORTS[0], 1.0, 1.0, 0, {})
    true = others(exact(sample, corpus, k + own, part_rows))
    most = max(indexes.most_effort(index) for _, index in parts)
    tried: dict[str, tuple[float, float]] = {}
    for effort in EFFORTS:
        found = others(approximate(sample, corpus, parts, k + own, effort))
        tried[str(effort)] = recall(found.nearest(1), true.nearest(1)), recall(found, true)
        if tried[str(effort)][0] >= settings.recall or effort >= most:
            break
    return Effort(effort, *tried[str(effort)], k, tried)


def recall(found: Neighbours, true: Neighbours) -> float:
    """Share of the true neighbors that were found; equally near rows are interchangeable.

    Args:
        found: k neighbors of each query.
        true: Its k nearest, by an exact search.
    """
    return float((found.similarities >= true.similarities[:, -1:]).mean())


def describe_recall(recall: float, recall_at_k: float, k: int) -> str:
    """In words what is found: "the nearest neighbor of 95.1 % of a sample, and 84.0 % of its nearest 4"."""
    nearest = f"the nearest neighbor of {100 * recall:.1f} % of a sample"
    return f"{nearest}, and {100 * recall_at_k:.1f} % of its nearest {k}"
