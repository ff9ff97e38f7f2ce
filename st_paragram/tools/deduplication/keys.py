"""Keys that possible duplicates share: keys of normalized texts, and MinHash keys of their n-grams.

MinHash: the smallest hashes of two sets are equal with a probability equal to their Jaccard
similarity (Broder 1997, On the resemblance and containment of documents). A key combines several
minimum hashes and belongs to one of several bands. The n-grams of both sides of a pair also form a
set: if both sides reach the threshold, so does this set, since a/b >= t and c/d >= t give (a + c) /
(b + d) >= t. Near-duplicates have the same numbers, symbols and negations, so these are part of
each key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from st_paragram.tools.deduplication.settings import DeduplicationSettings
from st_paragram.tools.deduplication.tokens import essential, tokens

Hashes = NDArray[np.uint64]

_FACTOR = np.uint64(0xD6E8FEB86659FD93)
_SHIFT = np.uint64(32)
_BLOCK = 1024  # rows processed together: few enough for their arrays to stay in the cache


@dataclass(frozen=True)
class Form:
    """What is compared of a text."""

    key: str  # the tokens without spaces; if there are none, the text itself
    parts: Sequence[str]  # the words or characters, in order
    essential: str  # what near-duplicates may not add or lack
    ngrams: frozenset[str]


class Keys(NamedTuple):
    """Keys of n rows: for each view (see `DeduplicationSettings.views`), and for each side."""

    views: list[Hashes]  # (keys, n); 0 for none
    forms: list[Hashes]  # (n,) hashes of `Form.key`
    lengths: list[NDArray[np.int32]]  # (n,) numbers of parts


def form(text: str, settings: DeduplicationSettings, points: bool = False) -> Form:
    """Return the form of a text; `points` keeps the points of Hebrew and Arabic."""
    words = tokens(text, points)
    parts: Sequence[str] = words if settings.unit == "word" else " ".join(words)
    return Form(
        key="".join(words) or text.strip(),
        parts=parts,
        essential=" ".join(essential(words)),
        ngrams=ngrams(parts, settings),
    )


def ngrams(parts: Sequence[str], settings: DeduplicationSettings) -> frozenset[str]:
    """Return the n-grams of words or characters; a shorter text is a single n-gram."""
    is_word = settings.unit == "word"
    size = settings.ngram or (1 if is_word else 5)
    if size == 1 or not parts:
        return frozenset(parts)
    glue = " " if is_word else ""
    count = max(len(parts) - size + 1, 1)
    return frozenset(glue.join(parts[start : start + size]) for start in range(count))


def keys(columns: Sequence[Sequence[str]], settings: DeduplicationSettings) -> Keys:
    """Compute the keys of n rows."""
    views: list[list[Hashes]] = [[] for _ in settings.views(len(columns))]
    forms: list[list[Hashes]] = [[] for _ in columns]
    lengths: list[list[NDArray[np.int32]]] = [[] for _ in columns]
    for start in range(0, len(columns[0]), _BLOCK):
        texts = [column[start : start + _BLOCK] for column in columns]
        block = _keys_of_block(texts, settings)
        for parts, part in zip(views, block.views, strict=True):
            parts.append(part)
        for side in range(len(columns)):
            forms[side].append(block.forms[side])
            lengths[side].append(block.lengths[side])
    return Keys(
        [np.hstack(parts) for parts in views],
        [np.hstack(parts) for parts in forms],
        [np.hstack(parts) for parts in lengths],
    )


def _keys_of_block(columns: Sequence[Sequence[str]], settings: DeduplicationSettings) -> Keys:
    if settings.methods == ("exact",) and not settings.normalize:
        hashes = [_hashes(column) for column in columns]
        none = np.zeros(len(columns[0]), np.int32)
        views = [_joined(hashes, view)[None] for view in settings.views(len(columns))]
        return Keys(views, hashes, [none] * len(columns))
    sides = [[form(text, settings) for text in column] for column in columns]
    forms = []
    lengths = []
    for side in sides:
        forms.append(_hashes([text.key for text in side]))
        lengths.append(np.array([len(text.parts) for text in side], np.int32))
    exact = forms if settings.normalize else [_hashes(column) for column in columns]
    views = []
    for view in settings.views(len(columns)):
        parts = []
        if "exact" in settings.methods:
            parts.append(_joined(exact, view)[None])
        if "minhash" in settings.methods:
            parts.append(_band_keys([sides[side] for side in view], settings))
        views.append(np.vstack(parts))
    return Keys(views, forms, lengths)


def _hashes(texts: Sequence[str]) -> Hashes:
    digests = b"".join(
        blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts
    )
    return np.frombuffer(digests, np.uint64)


def _joined(hashes: Sequence[Hashes], view: tuple[int, ...]) -> Hashes:
    """Return one hash per row, which is not 0, from the hashes of the sides of a view."""
    joined = hashes[view[0]]
    for side in view[1:]:
        joined = _mixed(hashes[side] + _mixed(joined))
    return joined | np.uint64(1)


def _band_keys(sides: Sequence[Sequence[Form]], settings: DeduplicationSettings) -> Hashes:
    """Compute the keys of n rows in all bands, uint64 (bands, n); 0 for rows without n-grams."""
    result = np.zeros((settings.bands, len(sides[0])), np.uint64)
    filled: list[int] = []
    sizes: list[int] = []
    hashes: list[int] = []
    essentials: list[int] = []
    for index, row in enumerate(zip(*sides, strict=True)):
        before = len(hashes)
        for number, side in enumerate(row):
            for ngram in side.ngrams:
                hashes.append(crc32(f"{number}{ngram}".encode("utf-8", "replace")))
        if len(hashes) > before:
            filled.append(index)
            sizes.append(len(hashes) - before)
            essential = "\t".join(side.essential for side in row)
            essentials.append(crc32(essential.encode("utf-8", "replace")))
    if not filled:
        return result
    elements = np.array(hashes, np.uint64)
    starts = np.cumsum([0, *sizes[:-1]])
    for band in range(settings.bands):
        key = np.array(essentials, np.uint64)
        for number in range(band * settings.minima, (band + 1) * settings.minima):
            salt = _mixed(np.array([number + 1], np.uint64))
            key = _mixed(key + np.minimum.reduceat(_mixed(_mixed(elements ^ salt)), starts))
        result[band, filled] = key | np.uint64(1)
    return result


def _mixed(values: Hashes) -> Hashes:
    """Mix values to random-looking numbers, distinct for distinct values."""
    values = (values ^ (values >> _SHIFT)) * _FACTOR
    return values ^ (values >> _SHIFT)
