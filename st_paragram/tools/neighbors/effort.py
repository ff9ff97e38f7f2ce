"""How hard an index must look: measured on a sample of queries, against an exact search.

Recall is the share of the queries whose nearest row is found. It decides, since pairs are taken best first. The share
of their k nearest rows that are found is also reported: it is lower, and counts where all k matter, as for the
background of a margin. Equally near rows are interchangeable in both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from st_paragram.tools.neighbors.exact import exact
from st_paragram.tools.neighbors.inexact import Index
from st_paragram.tools.neighbors.results import Neighbors
from st_paragram.tools.neighbors.settings import SearchSettings
from st_paragram.tools.neighbors.vectors import Rows

#: Lists (IVF) or nodes (HNSW) looked at for a query: the first with enough recall is taken.
EFFORTS = (4, 8, 16, 32, 64, 128, 256, 512)
_SAMPLE = 1000  # queries


@dataclass(frozen=True)
class Effort:
    """How hard an index looks, and what it finds.

    Attributes:
        effort: See `Index.set_effort`.
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

    def __str__(self) -> str:
        """In words: "effort 8, finds the nearest neighbor of 95.1 % of a sample, and 84.0 % of its nearest 4"."""
        nearest = f"finds the nearest neighbor of {100 * self.recall:.1f} % of a sample"
        return f"effort {self.effort}, {nearest}, and {100 * self.recall_at_k:.1f} % of its nearest {self.k}"


def find_effort(queries: Rows, index: Index, k: int, settings: SearchSettings, own: bool = False) -> Effort:
    """Set the least effort with enough recall, or the most there is.

    Args:
        queries: A sample of them is searched for.
        index: To search.
        k: Neighbors of a query; fewer where there are fewer rows.
        settings: `recall` and `seed` count.
        own: Queries are the rows of the corpus: each is left out of its own neighbors.
    """
    rows = np.sort(np.random.default_rng(settings.seed).permutation(len(queries))[:_SAMPLE])
    sample, k = queries.take(rows), min(k, len(index.corpus) - own)

    def others(neighbors: Neighbors) -> Neighbors:
        return neighbors.without_self(rows) if own else neighbors

    true, most = others(exact(sample, index.corpus, k + own)), index.most_effort
    tried: dict[str, tuple[float, float]] = {}
    for effort in EFFORTS:
        index.set_effort(effort)
        found = others(index.search(sample, k + own))
        tried[str(effort)] = recall(found.nearest(1), true.nearest(1)), recall(found, true)
        if tried[str(effort)][0] >= settings.recall or effort >= most:
            break
    return Effort(effort, *tried[str(effort)], k, tried)


def recall(found: Neighbors, true: Neighbors) -> float:
    """Share of the true neighbors that were found; equally near rows are interchangeable.

    Args:
        found: k neighbors of each query.
        true: Its k nearest, by an exact search.
    """
    return float((found.similarities >= true.similarities[:, -1:]).mean())
