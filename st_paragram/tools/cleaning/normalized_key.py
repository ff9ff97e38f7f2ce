"""Only the letters and digits of a text: neither tokenization nor quotation marks nor case hide what is equal."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from st_paragram.tools.cleaning.code_points import CodePoints

_ALPHANUMERIC = re.compile(r"[^\W_]+")
_LOWER = bytes(range(256)).lower()
_DROPPED = bytes(code for code in range(128) if not chr(code).isalnum())
_COMPLEX = 0xFFFF_FFFF  # what a character becomes depends on its neighbors, or is more than one character


def normalized_key(text: str) -> str:
    """The letters and digits of a text in compatibility form (NFKC), case folded."""
    if text.isascii():
        return text.encode("ascii").translate(_LOWER, _DROPPED).decode("ascii")
    return "".join(_ALPHANUMERIC.findall(unicodedata.normalize("NFKC", text).casefold()))


def normalized_key_hashes(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Hashes of the normalized keys of n texts, uint64 (n); the same on every machine, all bits equally good."""
    texts = [text.replace("ß", "ss") if "ß" in text else text for text in texts]  # common, and slow below
    points = CodePoints(texts)
    folded = _folded().take(points.codes)
    if (complex_ := folded == _COMPLEX).any():
        chosen = set(np.flatnonzero(points.count(complex_)).tolist())
        points = CodePoints([normalized_key(text) if index in chosen else text for index, text in enumerate(texts)])
        folded = _folded().take(points.codes)
        still = folded == _COMPLEX  # already in this form
        folded[still] = points.codes[still]
    kept = np.flatnonzero(folded)
    counts = points.count(folded > 0)
    ends = np.cumsum(counts)
    places = np.arange(len(kept)) - np.repeat(ends - counts, counts)
    terms = np.append(folded[kept].astype(np.uint64) * _powers(int(counts.max(initial=0))).take(places), np.uint64(0))
    sums = np.add.reduceat(terms, ends - counts) if len(texts) else np.zeros(0, np.uint64)
    sums[counts == 0] = 0  # reduceat gives the next text's first term there
    return _mixed(sums + counts.astype(np.uint64))


def _powers(count: int) -> NDArray[np.uint64]:
    """Powers 0 .. count of an odd constant, modulo 2**64."""
    factors = np.full(count + 1, 0x9E37_79B9_7F4A_7C15, np.uint64)
    factors[0] = 1
    return np.cumprod(factors, dtype=np.uint64)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Every bit of the result depends on all bits of a value: two rounds of multiplication and shift."""
    for factor in (0xFF51_AFD7_ED55_8CCD, 0xC4CE_B9FE_1A85_EC53):
        values = (values ^ (values >> np.uint64(33))) * np.uint64(factor)
    return values ^ (values >> np.uint64(33))


@cache
def _folded() -> NDArray[np.uint32]:
    """For each code point, what `normalized_key` makes of it: a code point, 0 for nothing, or _COMPLEX."""
    result = np.full(0x110000, _COMPLEX, np.uint32)
    result[0x3400:0xD7A4] = np.arange(0x3400, 0xD7A4)  # Han, Yi, Hangul syllables: mostly themselves
    result[0xD800:0xF900] = 0  # surrogates and private characters
    rest = (range(0x3400), range(0x4DC0, 0x4E00), range(0xA000, 0xAC00), range(0xD7A4, 0xD800), range(0xF900, 0x10000))
    for code in chain.from_iterable(rest):
        result[code] = _fold(chr(code))
    return result


def _fold(character: str) -> int:
    if not _joining().isdisjoint(unicodedata.normalize("NFKC", character)):
        return _COMPLEX
    found = normalized_key(character)
    return 0 if not found else ord(found) if len(found) == 1 else _COMPLEX


@cache
def _joining() -> frozenset[str]:
    """Characters that make one with the character before them: accents, parts of Hangul syllables."""
    parts = (unicodedata.decomposition(chr(code)).split(" ") for code in range(0x2FA20))
    joining = {chr(int(codes[1], 16)) for codes in parts if len(codes) == 2 and codes[0][0] != "<"}
    return frozenset(joining | {chr(code) for code in range(0x1161, 0x11C3)})
