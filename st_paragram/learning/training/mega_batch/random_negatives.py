"""Negatives without mining: any other sentence of the opposite side. What hard negatives are compared with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def random_negatives(n: int, seed: int, epoch: int, start: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw a negative for each sentence of a mega-batch, uniformly among the other pairs.

    Args:
        n: pairs, at least 1; a single pair gets its own partner, which gives no gradient.
        seed: of the training run.
        epoch: of the mega-batch.
        start: its first mini-batch; with seed and epoch it fixes the draw, so that a resumed run draws the same.

    Returns:
        Two int64 arrays (n,): the negative of each s among the t, and of each t among the s.
    """
    generator = np.random.default_rng([seed, epoch, start])
    of_s, of_t = (np.arange(n) + generator.integers(1, max(n, 2), size=(2, n))) % n
    return of_s, of_t
