"""Rows that are nearly the same: families such as "Click the File menu", "Click the Edit menu", ...

Two rows are near if of all shingles (words, or runs of words) of the two a share of at least `threshold` is in both:
the Jaccard similarity of two sets. Which rows to compare is found by MinHash in bands (Broder 1997, On the resemblance
and containment of documents; Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, chapter 3): rows of similarity
s have the same key of r minimum hashes, in one band with the probability s**r, so in at least one band with
1 - (1 - s**r)**bands. Rows that have a key in common are then compared exactly.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from itertools import islice, pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.settings import setting
from st_paragram.tools.cleaning.duplicates import Key
from st_paragram.tools.cleaning.min_hashes import minima_of_a_key, minimum_hashes
from st_paragram.tools.cleaning.options import options, plain
from st_paragram.tools.cleaning.word_hashes import mix, ngram_hashes, word_hashes

Pair = Sequence[str]

_BLOCK = 512  # pairs looked at together: few enough for their arrays to stay in the processor's cache
_SIDES = {Key.PAIR: (0, 1), Key.FIRST: (0,), Key.SECOND: (1,)}
_COMPARED = 200  # of the rows with one key, the last so many that stay: bounds the work on very common keys
_FOUND = 0.85  # the least probability that rows are compared whose similarity is just the threshold


@options
class NearDuplicates:
    """Which rows go because they are near others.

    Of a family of near rows the first `copies` stay, in the order of the texts and, within a text, of the alphabet.
    """

    name: ClassVar[str] = "near_duplicates"

    on: Key = setting(Key.PAIR, "sides to compare; pair: the words of both sides together")
    threshold: float = setting(0.8, "minimum share of shingles in common for rows to be near-duplicates", gt=0, le=1)
    copies: int = setting(1, "rows of a family to keep", ge=1)
    shingle: int = setting(1, "words per shingle; a row with fewer words is never a near-duplicate", ge=1)
    bands: int = setting(6, "sorting passes to bring near-duplicates together; more find more", ge=1)

    @property
    def minima(self) -> int:
        """Minimum hashes of a key: as many as find rows at the threshold with a probability of 0.85, at least one."""
        return minima_of_a_key(self.threshold, self.bands, _FOUND)

    def as_json(self) -> dict[str, Any]:
        """The options as JSON values."""
        return {name: plain(value) for name, value in asdict(self).items()}  # type: ignore[call-overload]

    def band_keys(self, pairs: Sequence[Pair], band: int, seed: int) -> NDArray[np.uint64]:
        """The keys of n pairs in a band, uint64 (n): the nearer two pairs are, the more likely are equal keys.

        Args:
            pairs: Two texts each.
            band: The number of the band, from 0.
            seed: Of the hashes.
        """
        blocks = [self._band_keys(pairs[start : start + _BLOCK], band, seed) for start in range(0, len(pairs), _BLOCK)]
        return np.concatenate(blocks) if blocks else np.zeros(0, np.uint64)

    def keep(self, pairs: Sequence[Pair], sizes: Iterable[int]) -> list[bool]:
        """Whether each of n pairs stays: fewer than `copies` of those before it in its group that stay are near it.

        Args:
            pairs: Two texts each, group after group.
            sizes: How many pairs each group has.
        """
        sets, stays = self._sets(pairs), list[bool]()
        for size in sizes:
            kept: deque[set[int]] = deque(maxlen=_COMPARED)
            for shingles in islice(sets, size):
                stays.append(sum(self._near(shingles, other) for other in kept) < self.copies)
                if stays[-1]:
                    kept.append(shingles)
        return stays

    def _near(self, one: set[int], other: set[int]) -> bool:
        shared = len(one & other)
        return shared > 0 and shared >= self.threshold * (len(one) + len(other) - shared)

    def _sets(self, pairs: Sequence[Pair]) -> Iterator[set[int]]:
        """The shingles of each pair."""
        for start in range(0, len(pairs), _BLOCK):
            block = pairs[start : start + _BLOCK]
            hashes, pair_of = self._shingles(block)
            ends = np.searchsorted(pair_of, np.arange(1, len(block) + 1)).tolist()
            values = hashes.tolist()
            yield from (set(values[begin:end]) for begin, end in pairwise([0, *ends]))

    def _shingles(self, pairs: Sequence[Pair]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Hashes of all shingles and the pair that each is of, in the order of the pairs."""
        sides = _SIDES[self.on]
        words, text_of = word_hashes([pair[side] for pair in pairs for side in sides])
        inside = np.flatnonzero(text_of[self.shingle - 1 :] == text_of[: max(len(text_of) - self.shingle + 1, 0)])
        hashes, text_of = ngram_hashes(words, self.shingle)[inside], text_of[inside]
        side = (text_of % len(sides)).astype(np.uint64)
        return mix(hashes + side), text_of // len(sides)

    def _band_keys(self, pairs: Sequence[Pair], band: int, seed: int) -> NDArray[np.uint64]:
        hashes, pair_of = self._shingles(pairs)
        starts = np.flatnonzero(np.diff(pair_of, prepend=-1))
        found = pair_of[starts]
        keys = np.zeros(len(pairs), np.uint64)
        for number in range(self.minima if len(found) else 0):
            minima = minimum_hashes(hashes, starts, seed, band * self.minima + number)
            keys[found] = mix(keys[found] + minima)
        for index in sorted(set(range(len(pairs))).difference(found.tolist())):  # without shingles
            text = "\t".join(pairs[index]).encode("utf-8", "replace")
            keys[index] = int.from_bytes(blake2b(text, digest_size=8).digest(), "little")
        return keys


@dataclass(frozen=True)
class Band:
    """A band: it takes the place of what makes rows equal, and brings rows together that may be near.

    Attributes:
        near: Which rows are near.
        number: Of the band, from 0.
    """

    near: NearDuplicates
    number: int

    @property
    def value(self) -> str:
        """Tells it from other bands and from what makes rows equal."""
        return json.dumps([self.near.as_json(), self.number])

    def keys(self, texts: Sequence[bytes], seed: int) -> list[bytes]:
        """The key of each row, 32 hexadecimal digits, from its two texts with a tab between."""
        pairs = [text.decode("utf-8").split("\t") for text in texts]
        return [b"%016x%016x" % (key, key) for key in self.near.band_keys(pairs, self.number, seed).tolist()]
