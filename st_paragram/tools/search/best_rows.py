"""The rows most similar to each of many others, kept while similarities are computed tile by tile."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.native import kernels
from st_paragram.tools.search.neighbours import Vectors
from st_paragram.tools.search.threads import threads


class BestRows:
    """The c candidates most similar to each of n rows, best first; of equally similar ones the earlier.

    Tiles must come in the order of their candidates.

    Attributes:
        similarities: float32 (n, c), minus infinity where no candidate was seen yet.
        rows: Their numbers, int64 (n, c), -1 where no candidate was seen yet.
    """

    def __init__(self, count: int, kept: int) -> None:
        """Begin with no candidates.

        Args:
            count: n.
            kept: c, at least 1.
        """
        self.similarities = np.full((count, kept), -np.inf, dtype=np.float32)
        self.rows = np.full((count, kept), -1, dtype=np.int64)

    def see(self, begin: int, tile: Vectors, first: int) -> None:
        """Look at a tile, (h, w): similarities of the rows from `begin` on with the candidates from `first` on."""
        self._see(slice(begin, begin + tile.shape[0]), tile, first, of_columns=False)

    def see_columns(self, begin: int, tile: Vectors, first: int) -> None:
        """Look at a tile, (h, w): similarities of the candidates from `first` on with the rows from `begin` on."""
        self._see(slice(begin, begin + tile.shape[1]), tile, first, of_columns=True)

    def _see(self, own: slice, tile: Vectors, first: int, of_columns: bool) -> None:
        values, rows = self.similarities[own], self.rows[own]
        if (native := kernels()) is not None:
            native.keep_best(tile, first, values, rows, of_columns, threads())
        else:
            _keep_best(tile.T if of_columns else tile, first, values, rows)


def _keep_best(tile: Vectors, first: int, values: Vectors, rows: NDArray[np.int64]) -> None:
    """What the kernel of the same name does: few similarities of a later tile are better than what is there."""
    kept, least = values.shape[1], values[:, -1]
    if tile.shape[1] > kept and np.isneginf(least).any():
        least = np.maximum(least, np.partition(tile, -kept, axis=1)[:, -kept])
    own, columns = np.nonzero(tile >= least[:, None])
    touched = np.unique(own)
    all_own = np.concatenate([np.repeat(touched, kept), own])
    all_values = np.concatenate([values[touched].ravel(), tile[own, columns]])
    all_rows = np.concatenate([rows[touched].ravel(), columns + first])
    order = np.lexsort((all_rows, -all_values, all_own))
    starts = np.flatnonzero(np.diff(all_own[order], prepend=-1))
    chosen = order[(starts[:, None] + np.arange(kept)).ravel()]
    values[touched] = all_values[chosen].reshape(-1, kept)
    rows[touched] = all_rows[chosen].reshape(-1, kept)
