"""Batches of pairs of similar length, limited by a budget of tokens, in an order set by a seed."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from st_paragram.errors import SettingsError
from st_paragram.learning.training.batch_order import EpochPermutation

Rows = NDArray[np.int64]


class TokenBatches:
    """The batches of an epoch: every row once, sorted by length within windows.

    Batches and windows come in random order. The sizes of batches depend only on the lengths, so
    every epoch has the same number of batches; rows of equal length are assigned to batches at
    random. A window is a run of rows in the store, which is shuffled.

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
        longest = lengths.max(initial=0)
        if longest > budget:
            raise SettingsError(
                f"batch_tokens is {budget}, but a sentence has {longest} tokens with its end; raise"
                " batch_tokens, or lower max_length"
            )
        self.budget = budget
        self._seed = seed
        self._window = window
        self._lengths = lengths
        self._edges = [self._edges_of(begin) for begin in range(0, len(lengths), window)]
        self._counts = np.array([len(edges) - 1 for edges in self._edges])
        # the orders of one epoch and of one window are in memory
        self._windows = lru_cache(maxsize=1)(self._shuffled_windows)
        self._rows = lru_cache(maxsize=1)(self._sorted_rows)

    def __len__(self) -> int:
        """Number of batches in an epoch."""
        return int(self._counts.sum())

    def at(self, number: int) -> Rows:
        """Return the rows of a batch, int64 (n,), with batches numbered from 0 over all epochs."""
        epoch, position = divmod(number, len(self))
        windows, starts = self._windows(epoch)
        place = int(np.searchsorted(starts, position, side="right")) - 1
        window = int(windows[place])
        rows, order = self._rows(epoch, window)
        batch = order[position - starts[place]]
        edges = self._edges[window]
        return rows[edges[batch] : edges[batch + 1]]

    def _shuffled_windows(self, epoch: int) -> tuple[Rows, Rows]:
        """Return an epoch's windows in order, and the position of the first batch of each."""
        windows = EpochPermutation(len(self._edges), self._seed, epoch)[:]
        counts = self._counts[windows]
        return windows, np.cumsum(counts) - counts

    def _sorted_rows(self, epoch: int, window: int) -> tuple[Rows, Rows]:
        """Return a window's rows sorted by length, and the order of its batches."""
        random = np.random.default_rng([self._seed, epoch, window])
        begin = window * self._window
        lengths = self._lengths[begin : begin + self._window]
        rows = begin + np.lexsort((random.random(len(lengths)), lengths))
        return rows, random.permutation(self._counts[window])

    def _edges_of(self, begin: int) -> Rows:
        """Find where the batches of a window begin and end among its rows sorted by length."""
        lengths = np.sort(self._lengths[begin : begin + self._window]).astype(np.int64)
        edges = [int(np.searchsorted(lengths, 0, side="right"))]
        while edges[-1] < len(lengths):
            rest = lengths[edges[-1] :][: self.budget]
            # The longest of n rows is the last: the cost grows with n, so bisection finds the
            # largest n.
            costs = rest * np.arange(1, len(rest) + 1)
            size = int(np.searchsorted(costs, self.budget, side="right"))
            edges.append(edges[-1] + size)
        return np.array(edges)
