"""Which mini-batches form a mega-batch, and which of its texts are equal: pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.learning.training.batch_order import mix


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
    """The annealed mega-batches of a training run (EMNLP 2022, section 3).

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


def text_labels(ids: NDArray[np.integer[Any]], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """A 64-bit label for each text, equal where the ids are equal (and else different but for a chance of 2^-64).

    Args:
        ids: integers (total,), no text empty.
        offsets: int64 (n + 1,).

    Returns:
        int64 (n,).
    """
    positions = np.arange(len(ids), dtype=np.uint64) - np.repeat(offsets[:-1], np.diff(offsets)).astype(np.uint64)
    words = mix(mix(positions + np.uint64(0x9E3779B97F4A7C15)) ^ ids.astype(np.uint64))
    return np.add.reduceat(words, offsets[:-1]).view(np.int64)
