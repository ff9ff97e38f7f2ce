"""The task, language and rows of each training step, which depend only on its number and a seed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from st_paragram.learning.training.batch_order import EpochPermutation

if TYPE_CHECKING:
    from st_paragram.families.muse.settings import DualEncoderSettings
    from st_paragram.families.muse.task_rows import TaskRows

Rows = NDArray[np.int64]

_DRAWS = 4096  # steps whose sources are drawn at a time
# Prefixes of seeds: numpy pads seeds with zeros, so seeds of sources and batches could be equal.
_SOURCE_SEED = 1
_BATCH_SEED = 2


class TaskSampler:
    """Draw a source for each step, and return its next batch.

    Tasks are drawn by their shares of the steps, languages by their number of rows to the power
    `language_power`; `probabilities` (sources,) are the results. A source's rows come in random
    order; no row is repeated before all have been used, except a remainder smaller than a batch.
    `length_buckets` batches at a time are sorted by length and come in random order.
    """

    def __init__(self, sources: Sequence[TaskRows], settings: DualEncoderSettings) -> None:
        """Sample from sources whose tasks all have a share above 0."""
        sizes: dict[str, float] = defaultdict(float)
        for source in sources:
            sizes[source.task] += len(source) ** settings.language_power
        weights = np.zeros(len(sources))
        for number, source in enumerate(sources):
            size = len(source) ** settings.language_power
            weights[number] = settings.shares[source.task] * size / sizes[source.task]
        self.probabilities = weights / weights.sum()
        self.sources = sources
        self.batch_size = settings.batch_size
        self._length_buckets = settings.length_buckets
        self._seed = settings.seed
        self._drawn: list[Rows] = []  # the sources of each block of steps
        self._counts_before = [np.zeros(len(sources), np.int64)]  # draws before each block
        # the current pool of each source
        self._pools: dict[int, tuple[tuple[int, int], list[Rows]]] = {}

    def at(self, step: int) -> tuple[int, Rows]:
        """Return a step's source, counted from 0, and rows, int64 (n,).

        n is the batch size, or the number of rows if it is smaller.
        """
        block, place = divmod(step, _DRAWS)
        while len(self._drawn) <= block:
            self._draw_block()
        drawn = self._drawn[block]
        source = int(drawn[place])
        # counted over all epochs
        batch = int(self._counts_before[block][source] + np.count_nonzero(drawn[:place] == source))
        epoch, batch = divmod(batch, self._batches_per_epoch(source))
        pool, place = divmod(batch, self._length_buckets)
        if source not in self._pools or self._pools[source][0] != (epoch, pool):
            self._pools[source] = (epoch, pool), self._pool(source, epoch, pool)
        _, batches = self._pools[source]
        return source, batches[place]

    def _draw_block(self) -> None:
        """Draw the sources of the next block of steps."""
        count = len(self.sources)
        random = np.random.default_rng([_SOURCE_SEED, self._seed, len(self._drawn)])
        drawn = random.choice(count, _DRAWS, p=self.probabilities)
        self._drawn.append(drawn)
        self._counts_before.append(self._counts_before[-1] + np.bincount(drawn, minlength=count))

    def _batches_per_epoch(self, source: int) -> int:
        return max(1, len(self.sources[source]) // self.batch_size)

    def _pool(self, source: int, epoch: int, number: int) -> list[Rows]:
        """Return batches of rows of similar length, in random order."""
        rows_of_source = self.sources[source]
        size = self.batch_size
        begin = number * self._length_buckets * size
        end = min(begin + self._length_buckets * size, self._batches_per_epoch(source) * size)
        rows = EpochPermutation(len(rows_of_source), self._seed + source, epoch)[begin:end]
        rows = rows[np.argsort(rows_of_source.lengths(rows), kind="stable")]
        random = np.random.default_rng([_BATCH_SEED, self._seed, source, epoch, number])
        order = random.permutation(max(1, len(rows) // size))
        return [rows[batch * size : (batch + 1) * size] for batch in order]
