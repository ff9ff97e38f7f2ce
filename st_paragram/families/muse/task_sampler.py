"""Which rows of which task and language a step trains on: a pure function of its number and the seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from st_paragram.learning.training.batch_order import EpochPermutation

Rows = NDArray[np.int64]

_DRAWS = 4096  # steps whose sources are drawn at a time
_OF_SOURCES, _OF_BATCHES = 1, 2  # numpy fills seeds up with zeros: the prefix distinguishes what is drawn


@dataclass(frozen=True)
class Source:
    """Pairs of one task and language.

    Attributes:
        name: For logs.
        rows: How many there are.
        weight: Its share of the steps is its part of all weights.
        lengths: Of rows, int64 (n,), for rows, int64 (n,).
        vectors: Of rows, float32 (n, D), for rows: batches combine similar rows.
    """

    name: str
    rows: int
    weight: float
    lengths: Callable[[Rows], NDArray[np.int64]]
    vectors: Callable[[Rows], NDArray[np.float32]]


@dataclass(frozen=True)
class Pool:
    """Batches that were drawn together.

    Attributes:
        source: The number of their source.
        epoch: Of the source.
        number: Of the pool in that epoch.
        batches: Rows of the source, int64 (n,) each, no row twice.
    """

    source: int
    epoch: int
    number: int
    batches: Sequence[Rows]


class TaskSampler:
    """Draws a source for each step by its weight, and gives the batches of a source in turn.

    A source's rows come in a random order, all of them before any comes again, but for less than a batch. Several
    batches at a time are sorted by length into `length_buckets` parts, and each is cut into `similar_batches` batches
    by the directions in which its vectors differ most.

    Attributes:
        shares: Of the steps, float64 (sources,).
        batch_size: Rows of a batch.
    """

    def __init__(
        self, sources: Sequence[Source], batch_size: int, length_buckets: int, similar_batches: int, seed: int
    ) -> None:
        """Sample from sources; see the class."""
        self.sources = list(sources)
        self.batch_size, self._seed = batch_size, seed
        self._buckets, self._pool = length_buckets, length_buckets * similar_batches
        weights = np.array([source.weight for source in sources])
        self.shares = weights / weights.sum()
        self._drawn: list[NDArray[np.int64]] = []
        self._before: list[NDArray[np.int64]] = [np.zeros(len(sources), np.int64)]
        self._pools: dict[int, Pool] = {}

    def at(self, step: int) -> tuple[int, Rows]:
        """The source of a step, counted from 0, and its rows, int64 (n,); n is the batch size if there are as many."""
        pool, place = self.pool_at(step)
        return pool.source, pool.batches[place]

    def pool_at(self, step: int) -> tuple[Pool, int]:
        """The batches that the batch of a step was drawn with, and its place among them."""
        block, place = divmod(step, _DRAWS)
        while len(self._drawn) <= block:
            self._draw(len(self._drawn))
        drawn = self._drawn[block]
        source = int(drawn[place])
        number = int(self._before[block][source] + np.count_nonzero(drawn[:place] == source))
        return self._pool_of(source, number)

    def _draw(self, block: int) -> None:
        count = len(self.sources)
        drawn = np.random.default_rng([_OF_SOURCES, self._seed, block]).choice(count, _DRAWS, p=self.shares)
        self._drawn.append(drawn)
        self._before.append(self._before[-1] + np.bincount(drawn, minlength=count))

    def _pool_of(self, source: int, number: int) -> tuple[Pool, int]:
        """The pool and the place of a batch of a source, counted from 0 over all epochs."""
        epoch, place = divmod(number, max(1, self.sources[source].rows // self.batch_size))
        pool, place = divmod(place, self._pool)
        seen = self._pools.get(source)
        if seen is None or (seen.epoch, seen.number) != (epoch, pool):
            seen = self._pools[source] = Pool(source, epoch, pool, self._arranged(source, epoch, pool))
        return seen, place

    def _arranged(self, source: int, epoch: int, pool: int) -> list[Rows]:
        """The batches of a pool, in random order."""
        of, size = self.sources[source], self.batch_size
        permutation = EpochPermutation(of.rows, self._seed + source, epoch)
        whole = max(1, of.rows // size) * size
        rows = permutation[pool * self._pool * size : min((pool + 1) * self._pool * size, whole)]
        batches = max(1, len(rows) // size)
        random = np.random.default_rng([_OF_BATCHES, self._seed, source, epoch, pool])
        rows = rows[np.argsort(of.lengths(rows), kind="stable")]
        parts = np.array_split(np.arange(batches), min(self._buckets, batches))
        arranged: list[Rows] = []
        for part in parts:
            within = rows[part[0] * size : (part[-1] + 1) * size] if batches > 1 else rows
            arranged += _alike(within, of.vectors(within), size, random) if len(part) > 1 else [within]
        return [arranged[number] for number in random.permutation(len(arranged))]


def _alike(rows: Rows, vectors: NDArray[np.float32], size: int, random: np.random.Generator) -> list[Rows]:
    """Cut rows into batches of `size`, halving them along the direction in which their vectors differ most."""
    batches = len(rows) // size
    if batches <= 1:
        return [rows]
    centred = vectors - vectors.mean(0)
    direction = random.standard_normal(vectors.shape[1], np.float32)
    for _ in range(3):  # power iterations: nearly the first principal component
        direction = centred.T @ (centred @ direction)
        direction /= np.linalg.norm(direction) + 1e-12
    order = np.argsort(centred @ direction, kind="stable")
    half = batches // 2 * size
    halves = order[:half], order[half:]
    return [batch for half in halves for batch in _alike(rows[half], vectors[half], size, random)]
