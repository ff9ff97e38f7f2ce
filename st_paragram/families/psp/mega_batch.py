"""Mega-batches: the schedule of their sizes, and their texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.pair_store import PairStore
from st_paragram.core.tokenizers import flat_ids
from st_paragram.learning.training.batch_order import GOLDEN, EpochPermutation, mix
from st_paragram.learning.training.text_labels import text_labels

Ids = NDArray[np.int32]
Rows = NDArray[np.int64]

_DRAWS = 50  # attempts to draw a random negative that is allowed


@dataclass(frozen=True)
class MegaBatch:
    """Mini-batches `start` to `stop - 1` of an epoch.

    `size` is M, though `stop - start` is less at an epoch's end.
    """

    epoch: int
    start: int
    stop: int
    size: int


def mega_batches(
    batches_per_epoch: int, maximum: int, anneal_interval: int = 150
) -> Iterator[MegaBatch]:
    """Yield the annealed mega-batches of a training run without end (EMNLP 2022, section 3).

    M starts at 1. When a mega-batch is formed, M grows by one if another `anneal_interval`
    mini-batches, counted over all epochs, have been used, up to `maximum`. With an interval of 0, M
    is `maximum` from the start. A mega-batch ends with its epoch.
    """
    size = 1 if anneal_interval else maximum
    used = 0
    intervals = 0
    for epoch in count():
        start = 0
        while start < batches_per_epoch:
            if anneal_interval and size < maximum and used // anneal_interval > intervals:
                size += 1
                intervals = used // anneal_interval
            stop = min(start + size, batches_per_epoch)
            yield MegaBatch(epoch, start, stop, size)
            used += stop - start
            start = stop


@dataclass(frozen=True)
class MegaBatchTexts:
    """The n pairs of a mega-batch, read from the store.

    Sentences 0 to n - 1 are s, sentences n to 2n - 1 are t. The ids of both sides are in one array,
    so both sides must use the same embedding matrix.
    """

    mega: MegaBatch
    ids: Ids  # (total,)
    offsets: Rows  # (2n + 1,): sentence i is ids[offsets[i]:offsets[i + 1]]
    rows: Rows  # (n,), rows of the store
    # (2, n), for s and t, equal for equal texts, even if they are scrambled
    labels: Rows
    # (4, n), sentences: s, t, negative of s, negative of t; empty before mining
    columns: Rows

    @classmethod
    def read(
        cls, store: PairStore, mega: MegaBatch, batch_size: int, seed: int, scramble: float = 0.0
    ) -> MegaBatchTexts:
        """Read the pairs of a mega-batch, given by the schedule and the epoch's permutation.

        `batch_size` is the mini-batch size, `seed` the seed of permutation and scrambling, and
        `scramble` the probability of shuffling a sentence's ids, with a new order in each epoch.
        """
        permutation = EpochPermutation(len(store), seed, mega.epoch)
        rows = permutation[mega.start * batch_size : mega.stop * batch_size]
        first, first_offsets = store.take("a", rows, np.int32)
        second, second_offsets = store.take("b", rows, np.int32)
        ids = np.concatenate([first, second])
        offsets = np.concatenate([first_offsets, second_offsets[1:] + first_offsets[-1]])
        labels = text_labels(ids, offsets).reshape(2, -1)
        if scramble:
            sentences = np.concatenate([2 * rows, 2 * rows + 1])
            ids = scrambled(ids, offsets, sentences, scramble, seed=seed, epoch=mega.epoch)
        return cls(mega, ids, offsets, rows, labels, columns=np.empty((4, 0), np.int64))

    def with_negatives(self, of_s: Rows, of_t: Rows) -> MegaBatchTexts:
        """Return these texts with the negatives of s and of t, sentences (n,) and (n,)."""
        pairs = np.arange(len(self.rows))
        return replace(self, columns=np.stack([pairs, pairs + len(pairs), of_s, of_t]))

    def with_random_negatives(self, seed: int, labels: Rows) -> MegaBatchTexts:
        """Draw negatives from the opposite side, by the seed and the place of the mega-batch.

        As in `hardest_negatives`, pairs that share one of their labels, (k, n), are never each
        other's negatives, and without candidates, a sentence gets its own partner.
        """
        generator = np.random.default_rng([seed, self.mega.epoch, self.mega.start])
        pairs = np.arange(len(self.rows))
        negatives = np.stack([pairs, pairs])
        for side in negatives:
            for _ in range(_DRAWS):
                missing = pairs[side == pairs]
                drawn = generator.integers(len(pairs), size=len(missing))
                is_excluded = (labels[:, None, missing] == labels[:, drawn]).any((0, 1))
                side[missing] = np.where(is_excluded, missing, drawn)
        return self.with_negatives(negatives[0] + len(pairs), negatives[1])

    def take(self, sentences: Rows) -> tuple[Ids, Rows]:
        """Return ids, int32 (total,), and offsets, int64 (B + 1,), of B sentences in any order."""
        counts = np.diff(self.offsets)[sentences]
        return flat_ids.take(self.ids, self.offsets[sentences], counts)


def scrambled(
    ids: Ids,
    offsets: Rows,
    sentences: Rows,
    probability: float,
    seed: int,
    epoch: int,
) -> Ids:
    """Shuffle the ids of some sentences: the scrambling of ACL 2019.

    The authors' code draws the order once per sentence. Here, each epoch has a new order, a pure
    function of seed, epoch and sentence, so that it is the same in mining, in the steps and in a
    resumed run.

    Args:
        ids: Integers (total,).
        offsets: (n + 1,): sentence i is ids[offsets[i]:offsets[i + 1]].
        sentences: (n,), a number for each sentence that does not depend on the mega-batch.
        probability: Probability that a sentence is scrambled.
        seed: Seed of the run.
        epoch: Epoch, from 0.
    """
    key = np.random.SeedSequence([seed, epoch, 1]).generate_state(1, np.uint64)
    random = mix(mix(sentences.astype(np.uint64) + GOLDEN) ^ key)
    is_scrambled = (random >> np.uint64(11)) * 2.0**-53 < probability
    counts = np.diff(offsets)
    texts = np.repeat(np.arange(len(counts)), counts)
    places = (np.arange(len(ids)) - np.repeat(offsets[:-1], counts)).astype(np.uint64)
    random_places = mix(random[texts] + GOLDEN * (places + np.uint64(1)))
    places = np.where(is_scrambled[texts], random_places, places)
    return ids[np.lexsort((places, texts))]
