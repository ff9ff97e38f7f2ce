"""The task, language and rows of each training step: a pure function of the step number and the
seed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from st_paragram.learning.training.batch_order import EpochPermutation

if TYPE_CHECKING:
    from st_paragram.families.muse.tasks import TaskRows

Rows = NDArray[np.int64]

_DRAWS = 4096  # steps whose sources are drawn at a time
# prefixes that separate the two kinds of seeds, since numpy pads seeds with zeros
_OF_SOURCES, _OF_BATCHES = 1, 2


class TaskSampler:
    """Draw a source for each step, and return its next batch.

    Tasks are drawn by their shares of the steps, languages by their number of rows to the power
    `language_power`; `probabilities` (sources,) are the results. A source's rows come in random
    order; no row is repeated before all have been used, except a remainder smaller than a batch.
    `length_buckets` batches at a time are sorted by length and come in random order.
    """

    def __init__(
        self,
        sources: Sequence[TaskRows],
        shares: Mapping[str, float],
        language_power: float,
        batch_size: int,
        length_buckets: int,
        seed: int,
    ) -> None:
        """Sample from sources whose tasks all have a share above 0; see the class."""
        sizes: dict[str, float] = defaultdict(float)
        for source in sources:
            sizes[source.task] += len(source) ** language_power
        weights = [
            shares[each.task] * len(each) ** language_power / sizes[each.task] for each in sources
        ]
        self.probabilities = np.array(weights) / np.array(weights).sum()
        self.sources, self.batch_size = list(sources), batch_size
        self._buckets, self._seed = length_buckets, seed
        self._drawn: list[NDArray[np.int64]] = []
        self._before: list[NDArray[np.int64]] = [np.zeros(len(sources), np.int64)]
        self._pools: dict[int, tuple[tuple[int, int], list[Rows]]] = {}

    def at(self, step: int) -> tuple[int, Rows]:
        """Return a step's source, counted from 0, and rows, int64 (n,); n is the batch size, or
        fewer if too few.
        """
        block, place = divmod(step, _DRAWS)
        while len(self._drawn) <= block:
            random = np.random.default_rng([_OF_SOURCES, self._seed, len(self._drawn)])
            self._drawn.append(random.choice(len(self.sources), _DRAWS, p=self.probabilities))
            self._before.append(
                self._before[-1] + np.bincount(self._drawn[-1], minlength=len(self.sources))
            )
        drawn = self._drawn[block]
        source = int(drawn[place])
        # counted over all epochs
        batch = int(self._before[block][source] + np.count_nonzero(drawn[:place] == source))
        epoch, batch = divmod(batch, max(1, len(self.sources[source]) // self.batch_size))
        pool, place = divmod(batch, self._buckets)
        if (seen := self._pools.get(source)) is None or seen[0] != (epoch, pool):
            seen = self._pools[source] = (epoch, pool), self._pool(source, epoch, pool)
        return source, seen[1][place]

    def _pool(self, source: int, epoch: int, number: int) -> list[Rows]:
        """Return batches of rows of similar length, in random order."""
        of, size = self.sources[source], self.batch_size
        whole = max(1, len(of) // size) * size
        begin = number * self._buckets * size
        rows = EpochPermutation(len(of), self._seed + source, epoch)[
            begin : min(begin + self._buckets * size, whole)
        ]
        rows = rows[np.argsort(of.lengths(rows), kind="stable")]
        random = np.random.default_rng([_OF_BATCHES, self._seed, source, epoch, number])
        return [
            rows[n * size : (n + 1) * size] for n in random.permutation(max(1, len(rows) // size))
        ]
