"""Properties of texts for filters: script, length in words or letters, and a key without punctuation."""

from __future__ import annotations

import re
import unicodedata

import regex

#: Scripts without spaces between words, as the contents of a character class.
UNSEGMENTED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Tibetan}\p{Myanmar}\p{Khmer}"
# Letters of an alphabet that correspond to one Han character: 2.85, measured on English and Chinese translations.
HAN_LETTERS, KANA_LETTERS = 3, 2

_UNSEGMENTED = regex.compile(f"[{UNSEGMENTED}]")
_LETTERS = regex.compile(rf"[\p{{L}}--[{UNSEGMENTED}]](?:[^\p{{L}} ]|[\p{{L}}--[{UNSEGMENTED}]])*", regex.VERSION1)
_HAN, _KANA = regex.compile(r"\p{Han}"), regex.compile(r"[\p{Hiragana}\p{Katakana}]")
_ALPHANUMERIC = re.compile(r"[^\W_]+")
_LOWER = bytes(range(256)).lower()
_DROPPED = bytes(code for code in range(128) if not chr(code).isalnum())


def is_unsegmented(text: str) -> bool:
    """Whether a text has more characters of scripts without spaces than words with letters of other scripts."""
    if text.isascii():
        return False
    count = len(_UNSEGMENTED.findall(text))
    return count > 0 and count > len(_LETTERS.findall(text))


def words(text: str) -> int:
    """Count words between single spaces; 1 for an empty text."""
    return text.count(" ") + 1


def letters(text: str) -> int:
    """Count characters other than spaces; Han counts as 3 and kana as 2, to compare scripts."""
    count = len(text) - text.count(" ")
    if text.isascii():
        return count
    return count + (HAN_LETTERS - 1) * len(_HAN.findall(text)) + (KANA_LETTERS - 1) * len(_KANA.findall(text))


def normalized_key(text: str) -> str:
    """Return the letters and digits of a text in compatibility form (NFKC), case folded.

    Texts that differ only in tokenization, punctuation or case have equal keys.
    """
    if text.isascii():
        return text.encode("ascii").translate(_LOWER, _DROPPED).decode("ascii")
    return "".join(_ALPHANUMERIC.findall(unicodedata.normalize("NFKC", text).casefold()))
