"""Batches of pairs of like length, as many pairs as a budget of tokens allows, in an order that follows from a seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from st_paragram.errors import SettingsError
from st_paragram.learning.training.batch_order import EpochPermutation

#: The lengths of rows, int64 (n,), from the first row to the one before the second.
Lengths = Callable[[int, int], NDArray[np.int64]]

_WINDOW = 1 << 16  # rows that are sorted together: memory does not grow with the number of rows


class TokenBatches:
    """The batches of an epoch: every row once, sorted by length within windows, batches and windows in random order.

    Where batches end follows from the lengths alone, so that every epoch has the same number of them; which of the rows
    of one length a batch has is drawn again. Rows of a window follow one another in the store, which is shuffled.

    Args:
        rows: their number.
        lengths: of the longer side of rows, in ids, ends included.
        budget: a batch has at most as many sentences times the longest length.
        seed: of all orders.
        window: rows of a window.

    Raises:
        SettingsError: a row is longer than the budget.
    """

    def __init__(self, rows: int, lengths: Lengths, budget: int, seed: int, window: int = _WINDOW) -> None:
        self._rows, self._lengths, self._budget, self._seed, self._window = rows, lengths, budget, seed, window
        counts = [len(self._edges(begin)) - 1 for begin in range(0, rows, window)]
        self._counts = np.array(counts)
        self._batches = int(self._counts.sum())
        self._current: tuple[int, int] | None = None
        self._order: tuple[int, NDArray[np.int64], NDArray[np.int64]] | None = None

    def __len__(self) -> int:
        """Batches of an epoch."""
        return self._batches

    def at(self, number: int) -> NDArray[np.int64]:
        """The rows of a batch, int64 (n,), counting batches from 0 over all epochs."""
        epoch, position = divmod(number, self._batches)
        windows, starts = self._epoch(epoch)
        place = int(np.searchsorted(starts, position, side="right")) - 1
        rows, edges, order = self._sorted(epoch, int(windows[place]))
        batch = order[position - starts[place]]
        return rows[edges[batch] : edges[batch + 1]]

    def _epoch(self, epoch: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The order of windows in an epoch, and how many batches come before each."""
        if self._order is None or self._order[0] != epoch:
            windows = EpochPermutation(len(self._counts), self._seed, epoch)[:]
            counts = self._counts[windows]
            self._order = (epoch, windows, np.cumsum(counts) - counts)
        return self._order[1:]

    def _sorted(self, epoch: int, window: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The rows of a window by length, the edges of its batches, and their order."""
        if self._current != (epoch, window):
            random = np.random.default_rng([self._seed, epoch, window])
            begin = window * self._window
            lengths = self._of_window(begin)
            rows = begin + np.lexsort((random.random(len(lengths)), lengths))
            edges = self._edges(begin)
            self._in_order = (rows, edges, random.permutation(len(edges) - 1))
            self._current = (epoch, window)
        return self._in_order

    def _of_window(self, begin: int) -> NDArray[np.int64]:
        return self._lengths(begin, min(begin + self._window, self._rows))

    def _edges(self, begin: int) -> NDArray[np.int64]:
        """Where the batches of a window begin and end among its rows by length."""
        lengths = np.sort(self._of_window(begin))
        if lengths[-1] > self._budget:
            raise SettingsError(
                f"batch_tokens is {self._budget}, and a sentence has {lengths[-1]} pieces with its end; raise "
                "batch_tokens, or lower max_length"
            )
        edges = [0]
        while edges[-1] < len(lengths):
            first = edges[-1]
            # The longest of n rows is the last: the cost grows with n, so that the largest n is found by bisection.
            costs = lengths[first : first + self._budget] * np.arange(1, len(lengths[first : first + self._budget]) + 1)
            edges.append(first + int(np.searchsorted(costs, self._budget, side="right")))
        return np.array(edges)
