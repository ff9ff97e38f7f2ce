"""Properties of texts for filters: script, length, and a key without punctuation."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache

import numpy as np
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

_LETTERS = regex.compile(
    rf"[\p{{L}}--[{UNSEGMENTED}]](?:[^\p{{L}} ]|[\p{{L}}--[{UNSEGMENTED}]])*", regex.VERSION1
)
_HAN = r"\p{Han}"
_KANA = r"\p{Hiragana}\p{Katakana}"
# Characters that may be letters of another script than Latin: all beyond Latin and punctuation
_MAY_BE_FOREIGN = re.compile("[\xb5\u0250-\u200f\u2070-\U0010ffff]")
# Characters beyond the scripts that have spaces and punctuation: a faster search in most texts
_MAY_BE_UNSEGMENTED = re.compile("[\u0e00-\u200f\u2070-\U0010ffff]")
# Spacing accents become a space and a mark in compatibility form, and a capital I with a dot
# becomes i and a dot.
_ACCENT = regex.compile(r"[\u0300-\u036f]")
_NO_ACCENT = regex.compile(r"(?<= )[\u0300-\u036f]+|(?<=i)\u0307")
_OF_KEYS = rf"[{LETTERS}]--[\p{{Default_Ignorable_Code_Point}}{POINTS}]"
_IGNORED = regex.compile(f"[^{_OF_KEYS}]+", regex.VERSION1)
_LONG = b"\xf0"  # first byte, in UTF-8, of letters, marks and digits beyond U+FFFF
_CACHED = 4096  # several filters need the same properties of a batch of rows
_LOWER = bytes(range(256)).lower()
_DROPPED = bytes(code for code in range(128) if not chr(code).isalnum())


def single_spaced(text: str) -> str:
    """Return a text with single spaces between its words, and none at its ends."""
    if text.isprintable() and "  " not in text:  # the only printable white space is a space
        return text.strip()
    return " ".join(text.split())


def count_characters(characters: str, text: str) -> int:
    """Count the characters of a text that are in a character class, given by its contents."""
    runs = "".join(_runs(characters).findall(text))
    return len(runs) - runs.count(" ")


@cache
def _runs(characters: str) -> re.Pattern[str]:
    # with spaces, so that words of a script are a single match
    return re.compile(f"[ {_ranges(characters, 0x40000)}]+")


def _ranges(characters: str, end: int) -> str:
    """Return a character class of `regex` as ranges for `re`, which is three times as fast."""
    codes = np.arange(end, dtype="<u4")
    text = codes.tobytes().decode("utf-32-le", "surrogatepass")
    runs = regex.findall(f"[{characters}]+", text, regex.VERSION1)
    return "".join([f"{re.escape(run[0])}-{re.escape(run[-1])}" for run in runs])


def is_latin(text: str) -> bool:
    """Whether a text has only characters of blocks of Latin letters and punctuation."""
    return text.isascii() or _has_latin_blocks(text)


@lru_cache(_CACHED)
def _has_latin_blocks(text: str) -> bool:
    return _MAY_BE_FOREIGN.search(text) is None


def is_unsegmented(text: str) -> bool:
    """Whether a text has more characters of scripts without spaces than words of others."""
    return not is_latin(text) and _is_unsegmented(text)


@lru_cache(_CACHED)
def _is_unsegmented(text: str) -> bool:
    if not _MAY_BE_UNSEGMENTED.search(text):
        return False
    count = count_characters(UNSEGMENTED, text)
    if 2 * count > len(text):  # even if each other character was a word
        return True
    return count > 0 and count > len(_LETTERS.findall(text))


def has_letter(text: str) -> bool:
    """Whether a text has a letter."""
    return text[:1].isalpha() or any(map(str.isalpha, text))


def words(text: str) -> int:
    """Count words between single spaces; 1 for an empty text."""
    return text.count(" ") + 1


def letters(text: str) -> int:
    """Count characters other than spaces; Han counts as 3 and kana as 2, to compare scripts."""
    count = len(text) - text.count(" ")
    if not text.isascii():
        count += (HAN_LETTERS - 1) * count_characters(_HAN, text)
        count += (KANA_LETTERS - 1) * count_characters(_KANA, text)
    return count


@lru_cache(_CACHED)
def normalized_key(text: str) -> str:
    """Return the letters, marks and digits of a text in compatibility form (NFKC), case folded.

    Texts that differ only in tokenization, punctuation, case or the points of Hebrew and Arabic
    have equal keys.
    """
    if text.isascii():
        return text.encode("ascii").translate(_LOWER, _DROPPED).decode("ascii")
    content = folded(text).encode("utf-8", "surrogatepass").translate(None, _DROPPED)
    key = content.decode("utf-8", "surrogatepass")
    if key.isalnum() and "\u115f" not in key and "\u1160" not in key:  # Hangul fillers
        return key
    ignored = _IGNORED if _LONG in content else _ignored_to_ffff()
    return ignored.sub("", key)


@cache
def _ignored_to_ffff() -> re.Pattern[str]:
    return re.compile(f"[^{_ranges(_OF_KEYS, 0x10000)}]+")


def folded(text: str) -> str:
    """Return a text in compatibility form (NFKC), case folded."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return _NO_ACCENT.sub("", text) if _ACCENT.search(text) else text
