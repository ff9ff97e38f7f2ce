"""Keys that possible duplicates share: keys of normalized texts, and MinHash keys of their n-grams.

MinHash: the smallest hashes of two sets are equal with a probability equal to their Jaccard similarity (Broder 1997, On
the resemblance and containment of documents). A key combines several minimum hashes and belongs to one of several
bands. The n-grams of both sides of a pair also form a set: if both sides reach the threshold, so does this set, since
a/b >= t and c/d >= t give (a + c) / (b + d) >= t.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from zlib import crc32

import numpy as np
import regex
from numpy.typing import NDArray

from st_paragram.tools.cleaning.text import normalized_key
from st_paragram.tools.deduplication.settings import DeduplicationSettings

Hashes = NDArray[np.uint64]

# A run of letters, marks and digits, a character of a script without spaces, or any other character except spaces.
_ALONE = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}"
_WORDS = regex.compile(rf"[{_ALONE}]|[[\w]--[{_ALONE}_]]+|[^\s]", regex.VERSION1)
_FACTOR, _SHIFT = np.uint64(0xD6E8FEB86659FD93), np.uint64(32)
_BLOCK = 1024  # rows processed together: few enough for their arrays to stay in the cache


def ngrams(text: str, settings: DeduplicationSettings) -> frozenset[str]:
    """Return the n-grams of a text in lower case; a text shorter than an n-gram is a single n-gram."""
    words, lower = settings.unit == "word", text.lower()
    parts, glue, size = (_WORDS.findall(lower), " ", 1) if words else (lower, "", 5)
    size = settings.ngram or size
    count = max(len(parts) - size + 1, 1 if parts else 0)
    return frozenset(glue.join(parts[start : start + size]) for start in range(count))


def keys(columns: Sequence[Sequence[str]], settings: DeduplicationSettings) -> list[Hashes]:
    """Compute the keys of n rows for each view (see `DeduplicationSettings.views`), uint64 (keys, n); 0 for none."""
    views, starts = settings.views(len(columns)), range(0, len(columns[0]), _BLOCK)
    return [
        np.hstack([_of_block([columns[side][start : start + _BLOCK] for side in view], settings) for start in starts])
        for view in views
    ]


def _of_block(columns: Sequence[Sequence[str]], settings: DeduplicationSettings) -> Hashes:
    rows, found = list(zip(*columns, strict=True)), []
    if "exact" in settings.methods:
        found.append(np.array([_exact_key(row, settings.normalize) for row in rows], np.uint64)[None])
    if "minhash" in settings.methods:
        sets = [
            [crc32(f"{side}{each}".encode("utf-8", "replace")) for side, text in enumerate(row) for each in
             ngrams(text, settings)]
            for row in rows
        ]  # fmt: skip
        found.append(_band_keys(sets, settings))
    return np.vstack(found)


def _exact_key(row: Sequence[str], normalize: bool) -> int:
    texts = [normalized_key(text) or text.strip() for text in row] if normalize else row
    joined = "\t".join(texts).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(joined, digest_size=8).digest(), "little") | 1


def _band_keys(sets: Sequence[Sequence[int]], settings: DeduplicationSettings) -> Hashes:
    """Compute the keys of n sets in all bands, uint64 (bands, n); 0 for an empty set."""
    result = np.zeros((settings.bands, len(sets)), np.uint64)
    filled = [index for index, each in enumerate(sets) if each]
    if not filled:
        return result
    hashes = np.array([element for each in sets for element in each], np.uint64)
    starts = np.cumsum([0, *(len(sets[index]) for index in filled)])[:-1]
    for band in range(settings.bands):
        key = np.zeros(len(filled), np.uint64)
        for number in range(band * settings.minima, (band + 1) * settings.minima):
            salt = _mixed(np.array([number + 1], np.uint64))
            key = _mixed(key + np.minimum.reduceat(_mixed(_mixed(hashes ^ salt)), starts))
        result[band, filled] = key | np.uint64(1)
    return result


def _mixed(values: Hashes) -> Hashes:
    """Mix values to random-looking numbers, distinct for distinct values."""
    values = (values ^ (values >> _SHIFT)) * _FACTOR
    return values ^ (values >> _SHIFT)
