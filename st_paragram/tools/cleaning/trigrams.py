"""Word trigrams that the two texts of a row share, counted for many rows at once.

A trigram keeps 54 bits of its hash: that two different ones of a row are taken for one has a chance of about one in
10^13.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from st_paragram.tools.cleaning.base import Row
from st_paragram.tools.cleaning.word_hashes import ngram_hashes, word_hashes

_BLOCK = 512  # rows looked at together: few enough for their arrays to stay in the processor's cache
_SIDE_MASK = np.uint64(2 * _BLOCK - 1)


def trigram_overlaps(rows: Sequence[Row], lower_case: bool = True) -> NDArray[np.float64]:
    """Count the distinct trigrams that the first two columns share, divided by those of the column that has fewer.

    A text of fewer than three words has no trigrams; its overlap with any other is 0. The result does not depend on
    which text stands first.

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
