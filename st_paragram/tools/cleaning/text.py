"""Properties of texts for filters: script, length, and a key without punctuation."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import regex

from st_paragram.core.text.words import LETTERS, UNSEGMENTED

#: Points of Hebrew and Arabic, as the contents of a character class. Both are usually written
#: without, so that a text with points and the same text without are equal. Hamza and madda (U+0653
#: to U+0655) are part of the letter.
POINTS = (
    r"\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u0652\u0670"
    r"\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
)
# Letters of an alphabet that correspond to one Han character: 2.85, measured on English and Chinese
# translations.
HAN_LETTERS = 3
KANA_LETTERS = 2

_UNSEGMENTED = regex.compile(f"[{UNSEGMENTED}]")
_LETTERS = regex.compile(
    rf"[\p{{L}}--[{UNSEGMENTED}]](?:[^\p{{L}} ]|[\p{{L}}--[{UNSEGMENTED}]])*", regex.VERSION1
)
_HAN = regex.compile(r"\p{Han}")
_KANA = regex.compile(r"[\p{Hiragana}\p{Katakana}]")
# Characters beyond the scripts that have spaces and punctuation: a faster search in most texts
_MAY_BE_UNSEGMENTED = re.compile("[\u0e00-\u200f\u2070-\U0010ffff]")
# Spacing accents become a space and a mark in compatibility form, and a capital I with a dot
# becomes i and a dot.
_ACCENT = regex.compile(r"[\u0300-\u036f]")
_NO_ACCENT = regex.compile(r"(?<= )[\u0300-\u036f]+|(?<=i)\u0307")
_IGNORED = regex.compile(
    rf"[^[{LETTERS}]--[\p{{Default_Ignorable_Code_Point}}{POINTS}]]+", regex.VERSION1
)
_CACHED_KEYS = 4096  # several filters need the keys of a batch of rows
_LOWER = bytes(range(256)).lower()
_DROPPED = bytes(code for code in range(128) if not chr(code).isalnum())


def is_unsegmented(text: str) -> bool:
    """Whether a text has more characters of scripts without spaces than words of others."""
    if text.isascii() or not _MAY_BE_UNSEGMENTED.search(text):
        return False
    count = len(_UNSEGMENTED.findall(text))
    return count > 0 and count > len(_LETTERS.findall(text))


def has_letter(text: str) -> bool:
    """Whether a text has a letter."""
    return any(map(str.isalpha, text))


def words(text: str) -> int:
    """Count words between single spaces; 1 for an empty text."""
    return text.count(" ") + 1


def letters(text: str) -> int:
    """Count characters other than spaces; Han counts as 3 and kana as 2, to compare scripts."""
    count = len(text) - text.count(" ")
    if not text.isascii():
        count += (HAN_LETTERS - 1) * len(_HAN.findall(text))
        count += (KANA_LETTERS - 1) * len(_KANA.findall(text))
    return count


@lru_cache(_CACHED_KEYS)
def normalized_key(text: str) -> str:
    """Return the letters, marks and digits of a text in compatibility form (NFKC), case folded.

    Texts that differ only in tokenization, punctuation, case or the points of Hebrew and Arabic
    have equal keys.
    """
    if text.isascii():
        return text.encode("ascii").translate(_LOWER, _DROPPED).decode("ascii")
    return _IGNORED.sub("", folded(text))


def folded(text: str) -> str:
    """Return a text in compatibility form (NFKC), case folded."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return _NO_ACCENT.sub("", text) if _ACCENT.search(text) else text
