"""What a search finds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

NONE = -1.0  # cosine of a place without a row


@dataclass(frozen=True)
class Neighbours:
    """The k nearest rows of a corpus for each of n queries, nearest first; of equally near ones the earlier row.

    Args:
        similarities: Cosines, float32 (n, k).
        indices: Rows of the corpus, int64 (n, k).
    """

    similarities: Vectors
    indices: NDArray[np.int64]

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean cosine of each query with its k neighbors, (n,)."""
        return self.similarities.mean(axis=1, dtype=np.float64)

    def nearest(self, k: int) -> Neighbours:
        """The first `k` columns."""
        return Neighbours(self.similarities[:, :k], self.indices[:, :k])


def united(parts: Iterable[tuple[int, Neighbours]], count: int, k: int) -> Neighbours:
    """The k nearest of what was found in several searches of different rows.

    Args:
        parts: For each search the first of its queries, and the neighbors of that query and those after it. The rows
            that are searched must rise from part to part.
        count: All queries, n.
        k: To keep; all parts together must have as many for each query.
    """
    similarities = np.full((count, k), -np.inf, dtype=np.float32)
    indices = np.full((count, k), -1, dtype=np.int64)
    for begin, found in parts:
        own = slice(begin, begin + len(found.indices))
        near = np.concatenate([similarities[own], found.similarities], axis=1)
        rows = np.concatenate([indices[own], found.indices], axis=1)
        order = np.argsort(-near, axis=1, kind="stable")[:, :k]
        similarities[own], indices[own] = np.take_along_axis(near, order, 1), np.take_along_axis(rows, order, 1)
    return Neighbours(similarities, indices)
