"""Results of a search."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

NONE = -1.0  # cosine of a missing neighbor


@dataclass(frozen=True)
class Neighbors:
    """The k nearest rows of a corpus for each of n queries, ties in the order of rows.

    Args:
        similarities: Cosines, float32 (n, k); -1 where fewer rows were found.
        indices: Rows of the corpus, int64 (n, k); 0 where fewer rows were found.
    """

    similarities: Vectors
    indices: NDArray[np.int64]

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean cosine of each query with its k neighbors, (n,)."""
        return self.similarities.mean(axis=1, dtype=np.float64)

    def nearest(self, k: int) -> Neighbors:
        """The first `k` columns."""
        return Neighbors(self.similarities[:, :k], self.indices[:, :k])

    def at(self, columns: NDArray[np.int64]) -> Neighbors:
        """Select the given columns of each query, int64 (n, c)."""
        return Neighbors(
            np.take_along_axis(self.similarities, columns, 1),
            np.take_along_axis(self.indices, columns, 1),
        )

    def without_self(self, rows: NDArray[np.int64]) -> Neighbors:
        """Remove each query, a row of the corpus, from its own neighbors; k falls by one."""
        own_last = np.argsort(self.indices == rows[:, None], axis=1, kind="stable")
        return self.at(own_last[:, :-1])


def joined(parts: Iterable[Neighbors]) -> Neighbors:
    """Concatenate the neighbors of several blocks of queries."""
    parts = list(parts)
    return Neighbors(
        np.concatenate([part.similarities for part in parts]),
        np.concatenate([part.indices for part in parts]),
    )


def united(parts: Iterable[tuple[int, Neighbors]], count: int, k: int) -> Neighbors:
    """Merge the results of several searches in different rows to the k nearest.

    Args:
        parts: For each search, its first query, and the neighbors of this and the following
            queries. The rows that are searched must ascend from part to part.
        count: Number of all queries, n.
        k: Number of neighbors to keep; all parts together must have as many for each query.
    """
    best = Neighbors(np.full((count, k), -np.inf, np.float32), np.full((count, k), -1, np.int64))
    for begin, part in parts:
        own = slice(begin, begin + len(part.indices))
        both = Neighbors(
            np.concatenate([best.similarities[own], part.similarities], axis=1),
            np.concatenate([best.indices[own], part.indices], axis=1),
        )
        kept = both.at(np.argsort(-both.similarities, axis=1, kind="stable")[:, :k])
        best.similarities[own] = kept.similarities
        best.indices[own] = kept.indices
    return best
