"""Corrupted characters: control and private characters, U+FFFD, UTF-8 that was read as another encoding."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from st_paragram.tools.cleaning.code_points import CodePoints, table

NO_TEXT = "\x00-\x1f\x7f-\x9f\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef\ufffc-\uffff\U000f0000-\U0010ffff"
"""Control, replacement and private characters and lone surrogates, as the inside of a character class."""


def _decoded(encoding: str, first: int, last: int) -> str:
    """The characters that bytes become in an encoding, as the inside of a character class."""
    return re.escape(bytes(range(first, last + 1)).decode(encoding, errors="ignore"))


# A character of UTF-8 is a lead byte and bytes 80 .. BF behind it. Read as cp1252: "Ã©", "â€™", "Ð¿Ñ€"; as cp1251:
# "РџСЂРё". Four bytes begin with "ð".
_LATIN_TRAIL, _CYRILLIC_TRAIL = _decoded("cp1252", 0x80, 0xBF), _decoded("cp1251", 0x80, 0xBF)
_TWO, _THREE = _decoded("cp1252", 0xC2, 0xDE), _decoded("cp1252", 0xE0, 0xEF)

SUSPECT, _LEAD, _TRAIL = 1, 2, 4
SUSPICIOUS = {NO_TEXT: SUSPECT, f"{_TWO}{_THREE}ðРС": _LEAD, f"{_LATIN_TRAIL}{_CYRILLIC_TRAIL}": _TRAIL}
"""Flags of characters, for `code_points.table`: what is not text, and what misread characters begin and go on with."""

# One pair proves nothing ("AMANHÃ”" ends a quotation in Portuguese): it takes a small letter next to it, or several.
_MISREAD = re.compile(
    f"â€[{_LATIN_TRAIL}]|ï»¿|ðŸ[{_LATIN_TRAIL}]|(?<=[a-z])Ã[\xa1-\xbf]|Ã[\xa1-\xbf](?=[a-z])"
    f"|(?:[{_TWO}][{_LATIN_TRAIL}]){{3}}|(?:[{_THREE}][{_LATIN_TRAIL}]{{2}}){{2}}|(?:[РС][{_CYRILLIC_TRAIL}]){{3}}"
)
_NO_TEXT = re.compile(f"[{NO_TEXT}]")


def has_broken_characters(text: str) -> bool:
    """Whether a text holds control, replacement or private characters, lone surrogates, or misread UTF-8.

    Marks of direction, joiners, soft hyphens and the like are part of good text.
    """
    return _NO_TEXT.search(text) is not None or (not text.isascii() and _MISREAD.search(text) is not None)


def flag_misread(flags: NDArray[np.uint8]) -> None:
    """Flag as SUSPECT, in place, each character that may begin a misread one and has a fitting one behind it.

    Args:
        flags: Flags of characters as `SUSPICIOUS` gives them, (n,).
    """
    misread = (flags[:-1] & _LEAD > 0) & (flags[1:] & _TRAIL > 0)
    flags[:-1][misread] |= SUSPECT


def may_be_broken(texts: Sequence[str]) -> NDArray[np.bool_]:
    """Whether `has_broken_characters` may hold, for n texts at once and far faster: bool (n)."""
    points = CodePoints(texts)
    flags = _suspicious().take(points.codes)
    flag_misread(flags)
    return points.flags(flags) & SUSPECT > 0


@cache
def _suspicious() -> NDArray[np.uint8]:
    return table(SUSPICIOUS)
