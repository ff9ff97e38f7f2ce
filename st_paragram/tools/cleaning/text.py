"""What filters ask about a text: its script, how long it is in words or letters, and what it is without marks."""

from __future__ import annotations

import re
import unicodedata

import regex

#: Scripts that write no spaces between words, as the inside of a character class.
UNSEGMENTED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Tibetan}\p{Myanmar}\p{Khmer}"
# How many letters of an alphabet say as much as one character: 2.85, measured on English and Chinese translations.
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
    """Words between single spaces; 1 for an empty text."""
    return text.count(" ") + 1


def letters(text: str) -> int:
    """Characters that are not spaces, where Han counts as 3 and kana as 2, to compare scripts."""
    count = len(text) - text.count(" ")
    if text.isascii():
        return count
    return count + (HAN_LETTERS - 1) * len(_HAN.findall(text)) + (KANA_LETTERS - 1) * len(_KANA.findall(text))


def normalized_key(text: str) -> str:
    """The letters and digits of a text in compatibility form (NFKC), case folded.

    Neither tokenization nor quotation marks nor case hide what is equal.
    """
    if text.isascii():
        return text.encode("ascii").translate(_LOWER, _DROPPED).decode("ascii")
    return "".join(_ALPHANUMERIC.findall(unicodedata.normalize("NFKC", text).casefold()))
