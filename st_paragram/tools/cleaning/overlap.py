"""The filter `overlap`: paraphrases that repeat each other, from which little can be learned.

A trigram keeps 54 bits of its hash: that two different ones of a row are taken for one has a chance of about one in
10^13.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.settings import setting
from st_paragram.tools.cleaning.base import Row, RowFilter
from st_paragram.tools.cleaning.options import options
from st_paragram.tools.cleaning.word_hashes import ngram_hashes, word_hashes


@options
class Overlap(RowFilter):
    """Drop rows whose two texts share too many word trigrams (Wieting and Gimpel 2018, ParaNMT-50M, section 5).

    The overlap is the number of distinct trigrams that both texts have, divided by that of the text that has fewer;
    `word_hashes.words` says what a word is. A text of fewer than three words overlaps with nothing.
    """

    name: ClassVar[str] = "overlap"
    reasons: ClassVar[tuple[str, ...]] = ("n-gram overlap",)

    max_overlap: float = setting(0.7, "maximum share of word trigrams in common", ge=0, le=1)
    lower_case: bool = setting(True, "ignore case")

    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return "n-gram overlap" for rows above the limit."""
        above = trigram_overlaps(rows, self.lower_case) > self.max_overlap
        return [self.reasons[0] if over else None for over in above.tolist()]


_BLOCK = 512  # rows looked at together: few enough for their arrays to stay in the processor's cache
_SIDE_MASK = np.uint64(2 * _BLOCK - 1)


def trigram_overlaps(rows: Sequence[Row], lower_case: bool = True) -> NDArray[np.float64]:
    """Count the distinct trigrams that the first two columns share, divided by those of the column that has fewer.

    A text of fewer than three words has no trigrams; its overlap with any other is 0. The result does not depend on
    which text comes first.

    Args:
        rows: N rows.
        lower_case: Make no difference between upper and lower case.

    Returns:
        Shares from 0 to 1, float64 (N,).
    """
    blocks = [_overlaps(rows[start : start + _BLOCK], lower_case) for start in range(0, len(rows), _BLOCK)]
    return np.concatenate(blocks) if blocks else np.zeros(0)


def _overlaps(rows: Sequence[Row], lower_case: bool) -> NDArray[np.float64]:
    words, text_of = word_hashes([text for row in rows for text in row[:2]], lower_case)
    inside = np.flatnonzero(text_of[2:] == text_of[:-2])  # the third word belongs to the text of the first
    keys, side = ngram_hashes(words, 3)[inside], text_of[inside].astype(np.uint64)
    return _shared(np.sort((keys & ~_SIDE_MASK) | side), len(rows))


def _shared(keys: NDArray[np.uint64], rows: int) -> NDArray[np.float64]:
    """Overlaps of rows from sorted keys, whose lowest bits are the row and, last of all, the side."""
    keys = keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys
    side = (keys & _SIDE_MASK).astype(np.int64)
    smaller = np.bincount(side, minlength=2 * rows).reshape(rows, 2).min(axis=1)
    both = side[1:][(keys[1:] ^ keys[:-1]) == 1]  # equal but for the side
    return np.bincount(both >> 1, minlength=rows) / np.maximum(smaller, 1)
