"""The texts of a mega-batch and the negatives mined in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.data.pair_store import PairStore
from st_paragram.core.npy_files import read_npz
from st_paragram.core.tokenizers import flat_ids
from st_paragram.errors import StoreError
from st_paragram.learning.training.batch_order import EpochPermutation
from st_paragram.learning.training.mega_batch.schedule import MegaBatch, text_labels
from st_paragram.learning.training.mega_batch.scrambling import scrambled

_FILE = "mega_batch.npz"
COLUMNS = ("s", "t", "negative_of_s", "negative_of_t")


@dataclass(frozen=True)
class MegaBatchTexts:
    """The n pairs of a mega-batch, read from the store: sentences 0 .. n - 1 are the s, n .. 2n - 1 the t.

    Both sides' ids stand in one array, so they must be rows of one table.
    `ids` is int32 (total,), `offsets` int64 (2n + 1,): sentence i is ids[offsets[i]:offsets[i + 1]]. Where `ids` are
    scrambled, `stored` has them in the order of the store.
    """

    mega: MegaBatch
    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    stored: NDArray[np.int32] | None = None

    @property
    def pairs(self) -> int:
        """The number of pairs, n."""
        return (len(self.offsets) - 1) // 2

    @classmethod
    def read(
        cls, store: PairStore, mega: MegaBatch, batch_size: int, seed: int, scramble: float = 0.0
    ) -> MegaBatchTexts:
        """Read the pairs that the schedule and the epoch's permutation put into a mega-batch.

        Args:
            store: the pairs.
            mega: which mini-batches.
            batch_size: pairs of a mini-batch.
            seed: of the permutation and of scrambling.
            scramble: probability that a sentence's ids are put in random order, drawn anew in each epoch.
        """
        n = len(store)
        permutation = EpochPermutation(n, seed, mega.epoch)
        rows = permutation[mega.start * batch_size : min(mega.stop * batch_size, n)]
        (first, first_offsets), (second, second_offsets) = (store.take(side, rows, np.int32) for side in "ab")
        offsets = np.concatenate([first_offsets, second_offsets[1:] + first_offsets[-1]])
        ids = np.concatenate([first, second])
        if not scramble:
            return cls(mega, ids, offsets)
        sentences = np.concatenate([2 * rows, 2 * rows + 1])
        return cls(mega, scrambled(ids, offsets, sentences, scramble, seed, mega.epoch), offsets, ids)

    def take(self, sentences: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Ids, int32 (total,), and offsets, int64 (B + 1,), of B sentences in the order given."""
        return flat_ids.take(self.ids, self.offsets[sentences], np.diff(self.offsets)[sentences])

    def labels(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Labels of the s and of the t, int64 (n,) each, equal where texts are equal, however they are scrambled."""
        labels = text_labels(self.ids if self.stored is None else self.stored, self.offsets)
        return labels[: self.pairs], labels[self.pairs :]


@dataclass(frozen=True)
class MinedMegaBatch:
    """The texts of a mega-batch with the sentences of its four columns: int64 (4, n), in the order of `COLUMNS`."""

    texts: MegaBatchTexts
    columns: NDArray[np.int64]

    @classmethod
    def mined(
        cls, texts: MegaBatchTexts, of_s: NDArray[np.int64], of_t: NDArray[np.int64], both_sides: bool
    ) -> MinedMegaBatch:
        """Put together what `hardest_negatives` found."""
        n = texts.pairs
        s, t = np.arange(n), np.arange(n, 2 * n)
        return cls(texts, np.stack([s, t, of_s if both_sides else of_s + n, of_t]))

    def save(self, folder: Path) -> None:
        """Write the columns to a checkpoint; the texts are in the store."""
        mega = self.texts.mega
        np.savez(folder / _FILE, mega=np.array([mega.epoch, mega.start, mega.stop, mega.size]), columns=self.columns)

    @classmethod
    def load(cls, folder: Path, store: PairStore, batch_size: int, seed: int, scramble: float = 0.0) -> MinedMegaBatch:
        """Read back what `save` wrote.

        Raises:
            StoreError: the checkpoint was mined in another store, or with another batch size.
            OSError, ValueError, TypeError: the file is damaged.
        """
        place, columns = read_npz(folder / _FILE, ("mega", "columns"), ("int64",))
        mega = MegaBatch(*place.tolist())
        if mega.epoch < 0 or not 0 <= mega.start < mega.stop <= -(-len(store) // batch_size):
            raise StoreError(f"{folder / _FILE}: {mega} in {store.path}; resume with the same store and settings")
        texts = MegaBatchTexts.read(store, mega, batch_size, seed, scramble)
        if columns.shape != (len(COLUMNS), texts.pairs) or not 0 <= columns.min() <= columns.max() < 2 * texts.pairs:
            seen = f"mined in another store than {store.path}, or with another batch size"
            raise StoreError(f"{folder / _FILE}: {seen}; resume with the same store and settings")
        return cls(texts, columns)
