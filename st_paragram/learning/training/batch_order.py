"""Which pairs a step trains on: a pure function of its number, the sizes of the stores and the seed; further seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.tokenizers.flat_ids import starts


class BatchOrder:
    """The batches of an epoch: each store's pairs once, in a separate order, and the stores in turn by size."""

    def __init__(self, sizes: Mapping[str, int], batch_size: int, seed: int) -> None:
        """Order the batches of stores.

        Args:
            sizes: pairs of each store, by its name.
            batch_size: pairs of a batch; a store's last one of an epoch may have fewer.
            seed: of the permutations.
        """
        self._names = list(sizes)
        self._sizes = list(sizes.values())
        self._batch_size, self._seed = batch_size, seed
        counts = [-(-size // batch_size) for size in self._sizes]
        self._starts = starts(np.array(counts))
        self._turns = turns(counts)

    def __len__(self) -> int:
        """Batches of an epoch."""
        return len(self._turns)

    def at(self, step: int) -> tuple[str, NDArray[np.int64]]:
        """The store that a step trains on, and the rows, int64 (n,), counting steps from 0 over all epochs."""
        epoch, position = divmod(step, len(self))
        batch = int(self._turns[position])
        store = int(np.searchsorted(self._starts, batch, side="right")) - 1
        begin = (batch - int(self._starts[store])) * self._batch_size
        size = self._sizes[store]
        rows = EpochPermutation(size, self._seed, epoch)[begin : begin + self._batch_size]
        return self._names[store], rows


def turns(counts: Sequence[int]) -> NDArray[np.int64]:
    """Put the batches of several stores into one order in which each store's are spread evenly.

    Args:
        counts: batches of each store.

    Returns:
        int64 (total,): numbers of batches, of which the first store has 0 .. counts[0] - 1, the second the next ones,
        and so on. A store's batches come in their order. After any n batches each of K stores has had its share of
        them, give or take (K + 1) / 2.
    """
    places = [(np.arange(count) + 0.5) / count for count in counts]
    return np.argsort(np.concatenate(places), kind="stable")


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
            left, right = right, left ^ (mix(right ^ key) & self._mask)
        return (left << self._half) | right


def mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finaliser (Steele, Lea and Flood, 2014): every input bit changes every output bit."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def seed_of(*parts: int) -> int:
    """A seed of 63 bits that follows from numbers of 0 or more, and -1."""
    return int(np.random.SeedSequence([part + 1 for part in parts]).generate_state(1, np.uint64)[0] >> np.uint64(1))
