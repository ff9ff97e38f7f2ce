"""Batches of pairs of similar length, limited by a budget of tokens, in an order determined by a
seed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from st_paragram.errors import SettingsError
from st_paragram.learning.training.batch_order import EpochPermutation


class TokenBatches:
    """The batches of an epoch: every row once, sorted by length within windows, batches and windows
    in random order.

    The sizes of batches depend only on the lengths, so every epoch has the same number of batches;
    rows of equal length are assigned to batches at random. A window is a run of rows in the store,
    which is shuffled.

    Args:
        lengths: Length of each row's longer side in ids, including the end; rows of length 0 are
            left out.
        budget: Maximum number of sentences in a batch times its longest length.
        seed: Seed of all orders.
        window: Rows that are sorted together.
    """

    def __init__(
        self, lengths: NDArray[np.int32], budget: int, seed: int, window: int = 1 << 16
    ) -> None:
        if (longest := lengths.max(initial=0)) > budget:
            raise SettingsError(
                f"batch_tokens is {budget}, but a sentence has {longest} pieces with its end; raise"
                " batch_tokens, or lower max_length"
            )
        self.budget, self._lengths, self._seed, self._window = budget, lengths, seed, window
        self._edges = [self._edges_of(begin) for begin in range(0, len(lengths), window)]
        self._batches = sum(len(edges) - 1 for edges in self._edges)
        self._epoch: tuple[int, NDArray[np.int64], NDArray[np.int64]] | None = None
        self._sorted: tuple[int, int, NDArray[np.int64], NDArray[np.int64]] | None = None

    def __len__(self) -> int:
        """Number of batches in an epoch."""
        return self._batches

    def at(self, number: int) -> NDArray[np.int64]:
        """Return the rows of a batch, int64 (n,), with batches numbered from 0 over all epochs."""
        epoch, position = divmod(number, self._batches)
        if self._epoch is None or self._epoch[0] != epoch:
            windows = EpochPermutation(len(self._edges), self._seed, epoch)[:]
            counts = np.array([len(self._edges[window]) - 1 for window in windows])
            self._epoch = (epoch, windows, np.cumsum(counts) - counts)
        _, windows, starts = self._epoch
        place = int(np.searchsorted(starts, position, side="right")) - 1
        window = int(windows[place])
        if self._sorted is None or self._sorted[:2] != (epoch, window):
            random = np.random.default_rng([self._seed, epoch, window])
            begin = window * self._window
            lengths = self._lengths[begin : begin + self._window]
            rows = begin + np.lexsort((random.random(len(lengths)), lengths))
            self._sorted = (epoch, window, rows, random.permutation(len(self._edges[window]) - 1))
        _, _, rows, order = self._sorted
        batch = order[position - starts[place]]
        return rows[self._edges[window][batch] : self._edges[window][batch + 1]]

    def _edges_of(self, begin: int) -> NDArray[np.int64]:
        """Find where the batches of a window begin and end among its rows sorted by length."""
        lengths = np.sort(self._lengths[begin : begin + self._window])
        edges = [int(np.searchsorted(lengths, 0, side="right"))]
        while edges[-1] < len(lengths):
            some = lengths[edges[-1] :][: self.budget].astype(np.int64)
            # The longest of n rows is the last: the cost grows with n, so bisection finds the
            # largest n.
            costs = some * np.arange(1, len(some) + 1)
            edges.append(edges[-1] + int(np.searchsorted(costs, self.budget, side="right")))
        return np.array(edges)
