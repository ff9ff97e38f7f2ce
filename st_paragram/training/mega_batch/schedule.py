"""Which pairs a mini-batch holds and which mini-batches form a mega-batch: pure functions of settings and seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class MegaBatch:
    """Mini-batches `start` .. `stop` - 1 of an epoch; `size` is M, `stop - start` is less at an epoch's end."""

    epoch: int
    start: int
    stop: int
    size: int


def mega_batches(
    batches_per_epoch: int, maximum: int, anneal_interval: int = 150, epochs: int | None = None
) -> Iterator[MegaBatch]:
    """The annealed mega-batches of a training (EMNLP 2022, section 3).

    M starts at 1; it grows by one when a mega-batch is formed after another `anneal_interval` mini-batches, counted
    over all epochs, have been seen, until `maximum`. A mega-batch ends with its epoch.

    Args:
        batches_per_epoch: mini-batches of an epoch.
        maximum: largest M.
        anneal_interval: mini-batches between two growths; 0 means M = `maximum` from the start.
        epochs: number of epochs; endless by default.
    """
    size = 1 if anneal_interval else maximum
    seen = grown_at = epoch = 0
    while epochs is None or epoch < epochs:
        start = 0
        while start < batches_per_epoch:
            if anneal_interval and size < maximum and seen // anneal_interval > grown_at:
                size += 1
                grown_at = seen // anneal_interval
            stop = min(start + size, batches_per_epoch)
            yield MegaBatch(epoch, start, stop, size)
            seen += stop - start
            start = stop
        epoch += 1


class EpochPermutation:
    """A permutation of 0 .. n - 1 that depends on seed and epoch alone and is evaluated where it is needed.

    A four-round Feistel network over the next even number of bits, walked until the value falls below n (Black and
    Rogaway, 2002, "Ciphers with Arbitrary Finite Domains"): no array of n numbers exists, whatever n is.
    """

    _ROUNDS = 4

    def __init__(self, n: int, seed: int, epoch: int) -> None:
        """Permute n >= 1 items."""
        self.n = n
        self._half = np.uint64(max(1, ((n - 1).bit_length() + 1) // 2))
        self._mask = np.uint64((1 << int(self._half)) - 1)
        entropy = np.random.SeedSequence([seed, epoch])
        self._keys = entropy.generate_state(self._ROUNDS, dtype=np.uint64)

    def __getitem__(self, span: slice) -> NDArray[np.int64]:
        """Items at the positions of a slice with step 1, int64."""
        start, stop, _ = span.indices(self.n)
        values = self._encrypt(np.arange(start, stop, dtype=np.uint64))
        while (outside := values >= self.n).any():
            values[outside] = self._encrypt(values[outside])
        return values.astype(np.int64)

    def _encrypt(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        left, right = values >> self._half, values & self._mask
        for key in self._keys:
            left, right = right, left ^ (_mix(right ^ key) & self._mask)
        return (left << self._half) | right


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finaliser (Steele, Lea and Flood, 2014): every input bit changes every output bit."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def text_labels(ids: NDArray[np.integer[Any]], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """A 64-bit label for each text, equal where the ids are equal (and else different but for a chance of 2^-64).

    Args:
        ids: integers (total,), no text empty.
        offsets: int64 (n + 1,).

    Returns:
        int64 (n,).
    """
    positions = np.arange(len(ids), dtype=np.uint64) - np.repeat(offsets[:-1], np.diff(offsets)).astype(np.uint64)
    words = _mix(_mix(positions + np.uint64(0x9E3779B97F4A7C15)) ^ ids.astype(np.uint64))
    return np.add.reduceat(words, offsets[:-1]).view(np.int64)
