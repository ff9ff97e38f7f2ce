"""Negatives mined among all batches that were drawn together, as in the mega-batches of EMNLP 2022."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from st_paragram.families.muse.task_sampler import Pool, Rows
from st_paragram.learning.losses.hardest_negatives import Precision, hardest_negatives

_FILE = "mined_negatives.npz"
_NAMES = ("pools", "seconds", "firsts")


@dataclass(frozen=True)
class PoolTexts:
    """The texts of a pool's pairs, in the order of its batches.

    Attributes:
        vectors: Of both sides, float (n, D) each.
        labels: Of both sides, int64 (n,) each, equal where texts are equal.
    """

    vectors: tuple[Tensor, Tensor]
    labels: tuple[Tensor, Tensor]


class MinedNegatives:
    """For each pair of a pool the most similar texts that do not belong to it, found when the pool is begun.

    Each text looks among the other side of the pool, as in P-SP's training on bitext; pairs that share a text are
    never each other's negatives. Of each source the pool in use is kept.
    """

    def __init__(self, read: Callable[[int, Rows], PoolTexts], precision: Precision = Precision.AUTO) -> None:
        """Mine in pools whose texts `read` gives for the number of a source and its rows, int64 (n,)."""
        self._read, self._precision = read, precision
        self._pools: dict[int, tuple[tuple[int, int], Rows]] = {}

    def of(self, pool: Pool, place: int) -> tuple[Rows, Rows]:
        """Rows outside a batch whose texts are the hardest negatives of its texts, int64 (K,) and (M,), sorted.

        The second texts of the first rows stand against the batch's first texts, and the other way round. A negative
        that is in the batch already is left out.
        """
        found = self._mined(pool)
        begin = sum(len(rows) for rows in pool.batches[:place])
        batch = pool.batches[place]
        seconds, firsts = (np.setdiff1d(rows, batch) for rows in found[:, begin : begin + len(batch)])
        return seconds, firsts

    def _mined(self, pool: Pool) -> Rows:
        """The rows of each pair's negatives, int64 (2, n): of second texts, and of first texts."""
        rows, place = np.concatenate(pool.batches), (pool.epoch, pool.number)
        seen = self._pools.get(pool.source)
        if seen is None or seen[0] != place or seen[1].shape[1] != len(rows):
            texts = self._read(pool.source, rows)
            found = hardest_negatives(*texts.vectors, texts.labels, precision=self._precision)
            seen = self._pools[pool.source] = place, rows[torch.stack(found).cpu().numpy()]
        return seen[1]

    def save(self, folder: Path) -> None:
        """Write what was mined in the pools in use to a checkpoint."""
        pools = [(source, *place, rows.shape[1]) for source, (place, rows) in sorted(self._pools.items())]
        found = [np.zeros((2, 0), np.int64), *(self._pools[source][1] for source, *_ in pools)]
        seconds, firsts = np.concatenate(found, axis=1)
        np.savez(folder / _FILE, pools=np.array(pools, np.int64).reshape(-1, 4), seconds=seconds, firsts=firsts)

    def load(self, folder: Path, sizes: Sequence[int]) -> None:
        """Read back what `save` wrote.

        Args:
            folder: of the checkpoint.
            sizes: rows of each source.

        Raises:
            OSError, ValueError: the file is missing or damaged, or of other sources.
        """
        with np.load(folder / _FILE) as file:
            pools, seconds, firsts = (file[name].astype(np.int64, casting="safe") for name in _NAMES)
        _check(pools, seconds, firsts, sizes)
        ends = np.cumsum(pools[:, 3])
        self._pools = {
            source: ((epoch, number), np.stack([seconds[end - count : end], firsts[end - count : end]]))
            for (source, epoch, number, count), end in zip(pools.tolist(), ends.tolist(), strict=True)
        }


def _check(pools: Rows, seconds: Rows, firsts: Rows, sizes: Sequence[int]) -> None:
    """Refuse what `save` cannot have written."""
    if pools.ndim != 2 or pools.shape[1] != 4 or (pools.size and pools.min() < 0):
        raise ValueError("mined_negatives.npz: no table of pools")
    if len(set(pools[:, 0].tolist())) != len(pools) or (len(pools) and pools[:, 0].max() >= len(sizes)):
        raise ValueError("mined_negatives.npz: of other sources of batches; resume with the same data and settings")
    if not seconds.shape == firsts.shape == (pools[:, 3].sum(),):
        raise ValueError("mined_negatives.npz: not a negative for each pair")
    most = np.repeat(np.array(sizes, np.int64)[pools[:, 0]], pools[:, 3])
    if any((rows < 0).any() or (rows >= most).any() for rows in (seconds, firsts)):
        raise ValueError("mined_negatives.npz: rows that do not exist; resume with the same data and settings")
