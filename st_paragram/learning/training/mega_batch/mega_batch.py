"""The texts of a mega-batch, some of them scrambled, and their negatives: mined in it, or drawn at random."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.pair_store import PairStore
from st_paragram.core.tokenizers import flat_ids
from st_paragram.errors import StoreError
from st_paragram.learning.training.batch_order import EpochPermutation, mix
from st_paragram.learning.training.mega_batch.schedule import MegaBatch, text_labels

_FILE = "mega_batch.npz"
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # the increment of SplitMix64
COLUMNS = ("s", "t", "negative_of_s", "negative_of_t")


@dataclass(frozen=True)
class MegaBatchTexts:
    """The n pairs of a mega-batch, read from the store: sentences 0 .. n - 1 are the s, n .. 2n - 1 the t.

    Both sides' ids are in one array, so they must be rows of one table.
    `ids` is int32 (total,), `offsets` int64 (2n + 1,): sentence i is ids[offsets[i]:offsets[i + 1]]. Where `ids` are
    scrambled, `stored` has them in the order of the store. `rows`, int64 (n,), are those of the store, and `targets`,
    float32 (2n, components), the vectors of a teacher, where there is one.
    """

    mega: MegaBatch
    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    stored: NDArray[np.int32] | None = None
    rows: NDArray[np.int64] | None = None
    targets: NDArray[np.float32] | None = None

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
            scramble: probability that a sentence's ids are put in random order, drawn again in each epoch.
        """
        n = len(store)
        permutation = EpochPermutation(n, seed, mega.epoch)
        rows = permutation[mega.start * batch_size : min(mega.stop * batch_size, n)]
        (first, first_offsets), (second, second_offsets) = (store.take(side, rows, np.int32) for side in "ab")
        offsets = np.concatenate([first_offsets, second_offsets[1:] + first_offsets[-1]])
        ids = np.concatenate([first, second])
        if not scramble:
            return cls(mega, ids, offsets, rows=rows)
        sentences = np.concatenate([2 * rows, 2 * rows + 1])
        return cls(mega, scrambled(ids, offsets, sentences, scramble, seed, mega.epoch), offsets, ids, rows)

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
        with np.load(folder / _FILE) as file:
            place, columns = file["mega"], file["columns"].astype(np.int64, casting="safe")
        mega = MegaBatch(*place.tolist())
        if mega.epoch < 0 or not 0 <= mega.start < mega.stop <= -(-len(store) // batch_size):
            raise StoreError(f"{folder / _FILE}: {mega} in {store.path}; resume with the same store and settings")
        texts = MegaBatchTexts.read(store, mega, batch_size, seed, scramble)
        if columns.shape != (len(COLUMNS), texts.pairs) or not 0 <= columns.min() <= columns.max() < 2 * texts.pairs:
            seen = f"mined in another store than {store.path}, or with another batch size"
            raise StoreError(f"{folder / _FILE}: {seen}; resume with the same store and settings")
        return cls(texts, columns)


def random_negatives(n: int, seed: int, epoch: int, start: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw a negative for each sentence of a mega-batch, uniformly among the other pairs: mining is compared with it.

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


def scrambled(
    ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
    sentences: NDArray[np.int64],
    probability: float,
    seed: int,
    epoch: int,
) -> NDArray[np.int32]:
    """Put the ids of some sentences in random order: the scrambling of ACL 2019.

    The authors' code draws the order once for a sentence; here it is drawn again in each epoch, as a pure function of
    seed, epoch and sentence, so that mining and the steps see the same and a resumed run draws the same again.

    Args:
        ids: (total,).
        offsets: (n + 1,): sentence i is ids[offsets[i]:offsets[i + 1]].
        sentences: (n,), a number for each sentence, whatever mega-batch it is in.
        probability: that a sentence is scrambled.
        seed: of the run.
        epoch: from 0.

    Returns:
        ids of the same shape; each sentence has its own.
    """
    key = np.random.SeedSequence([seed, epoch, 1]).generate_state(1, np.uint64)
    drawn = mix(mix(sentences.astype(np.uint64) + _GOLDEN) ^ key)
    chosen = (drawn >> np.uint64(11)) * 2.0**-53 < probability
    counts = np.diff(offsets)
    texts = np.repeat(np.arange(len(counts)), counts)
    places = np.arange(len(ids)) - np.repeat(offsets[:-1], counts)
    order = mix(drawn[texts] + _GOLDEN * (places + 1).astype(np.uint64))
    order = np.where(chosen[texts], order, places.astype(np.uint64))
    return ids[np.lexsort((order, texts))]
