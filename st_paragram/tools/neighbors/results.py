"""What a search finds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

NONE = -1.0  # cosine of a place without a row


@dataclass(frozen=True)
class Neighbors:
    """The k nearest rows of a corpus for each of n queries, nearest first; of equally near rows the earlier.

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
        """Of each query the given columns, int64 (n, c)."""
        return Neighbors(
            np.take_along_axis(self.similarities, columns, 1), np.take_along_axis(self.indices, columns, 1)
        )

    def without_self(self, rows: NDArray[np.int64]) -> Neighbors:
        """One neighbor fewer, where queries are the rows (n,) of the corpus: none is its own neighbor."""
        own_last = np.argsort(self.indices == rows[:, None], axis=1, kind="stable")
        return self.at(own_last[:, :-1])


def joined(parts: Iterable[Neighbors]) -> Neighbors:
    """The neighbors of several blocks of queries, one after another."""
    found = list(parts)
    return Neighbors(
        np.concatenate([each.similarities for each in found]), np.concatenate([each.indices for each in found])
    )


def united(parts: Iterable[tuple[int, Neighbors]], count: int, k: int) -> Neighbors:
    """The k nearest of what was found in several searches of different rows.

    Args:
        parts: For each search the first of its queries, and the neighbors of that query and those after it. The rows
            that are searched must rise from part to part.
        count: All queries, n.
        k: To keep; all parts together must have as many for each query.
    """
    best = Neighbors(np.full((count, k), -np.inf, np.float32), np.full((count, k), -1, np.int64))
    for begin, found in parts:
        own = slice(begin, begin + len(found.indices))
        both = Neighbors(
            np.concatenate([best.similarities[own], found.similarities], axis=1),
            np.concatenate([best.indices[own], found.indices], axis=1),
        )
        kept = both.at(np.argsort(-both.similarities, axis=1, kind="stable")[:, :k])
        best.similarities[own], best.indices[own] = kept.similarities, kept.indices
    return best
