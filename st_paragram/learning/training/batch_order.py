"""The order of the pairs in an epoch, a pure function of seed and epoch; derived seeds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # the increment of SplitMix64


class EpochPermutation:
    """A permutation of 0 .. n - 1 that depends only on seed and epoch and is evaluated on demand.

    It is a four-round Feistel network over the next even number of bits, applied until the value
    falls below n (Black and Rogaway, 2002, "Ciphers with Arbitrary Finite Domains"), so it needs no
    array of n numbers.
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
        """Return the items at the positions of a slice with step 1, int64."""
        start, stop, _ = span.indices(self.n)
        values = self._encrypt(np.arange(start, stop, dtype=np.uint64))
        while (outside := values >= self.n).any():
            values[outside] = self._encrypt(values[outside])
        return values.astype(np.int64)

    def _encrypt(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        left = values >> self._half
        right = values & self._mask
        for key in self._keys:
            encrypted = left ^ (mix(right ^ key) & self._mask)
            left = right
            right = encrypted
        return (left << self._half) | right


def mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply SplitMix64's finalizer (Steele, Lea and Flood, 2014): each bit affects all bits."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def seed_of(*parts: int) -> int:
    """Derive a seed of 63 bits from numbers of at least -1."""
    entropy = np.random.SeedSequence([part + 1 for part in parts])
    return int(entropy.generate_state(1, np.uint64)[0] >> np.uint64(1))
