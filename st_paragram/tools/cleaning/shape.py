"""Filters that look at the shape of rows: `length`, `ratio`, `cut_off`, `copied` and `script`."""

from __future__ import annotations

import logging
from functools import cache
from typing import Literal

import regex

from st_paragram.core.settings import setting
from st_paragram.errors import SettingsError
from st_paragram.tools.cleaning.base import Row, RowFilter, options
from st_paragram.tools.cleaning.languages import scripts
from st_paragram.tools.cleaning.text import (
    HAN_LETTERS,
    KANA_LETTERS,
    count_characters,
    has_letter,
    is_latin,
    is_unsegmented,
    letters,
    normalized_key,
    words,
)

logger = logging.getLogger(__name__)

_WORD_LETTERS = 5  # letters that count as a word in scripts without spaces
# Minimum of a word and of a side to count as copied, since names are the same
_MIN_LETTERS = 3
_MIN_WORDS = 4
# Letters of a script; letters without a script are symbols like the micro sign, letters of formulas
# or modifiers.
_OF_ANY_SCRIPT = regex.compile(r"[\p{L}--\p{Script=Zyyy}--\p{Script=Zinh}]", regex.VERSION1)
# The end of a sentence, which quotation marks and brackets may follow
_END = regex.compile(r"[\p{Sentence_Terminal}…:;][\p{Pe}\p{Pf}\p{Pi}\"'\s]*\Z")
_LONGEST_END = 8


@options
class Length(RowFilter):
    """Drop pairs with a side that is too short or too long.

    The original procedure allows 3 to 100 whitespace tokens on the English side (EMNLP 2022). Here,
    both sides are checked by default (see `length_on`).
    """

    name = "length"
    reasons = ("empty side", "too short", "too long")

    min_length: int = setting(
        3, "minimum words per side, or characters in a script without spaces", ge=1
    )
    max_length: int = setting(100, "maximum words per side", ge=1)
    max_characters: int = setting(
        200, "maximum characters per side in a script without spaces", ge=1
    )
    length_on: Literal["both", "english"] = setting(
        "both", "sides whose length is checked; english is the first side"
    )

    def __post_init__(self) -> None:
        """Check that the limits are not contradictory."""
        for option in ("max_length", "max_characters"):
            value = getattr(self, option)
            if value < self.min_length:
                raise SettingsError(
                    f"{option} is {value}; it must be at least min_length ({self.min_length})"
                )

    def reason(self, row: Row) -> str | None:
        """Return the reason to drop a row, or None to keep it."""
        if not row[0] or not row[1]:
            return "empty side"
        reason = self._reason_of_side(row[0])
        if reason is None and self.length_on == "both":
            reason = self._reason_of_side(row[1])
        return reason

    def _reason_of_side(self, text: str) -> str | None:
        length = words(text)
        maximum = self.max_length
        if is_unsegmented(text):
            length = len(text) - text.count(" ")
            maximum = self.max_characters
        if length < self.min_length:
            return "too short"
        return "too long" if length > maximum else None


@options
class Ratio(RowFilter):
    """Drop pairs with more words on a side than `max` times those of the other, plus `slack`.

    If a side is in a script without spaces between words, every five letters of both sides count as
    a word; a Han character counts as three letters and a kana as two, as measured on translations.
    """

    name = "ratio"
    reasons = ("length ratio",)

    max: float = setting(2.5, "maximum ratio of the two sides' numbers of words", ge=1)
    slack: float = setting(3.0, "words allowed in addition to the ratio, for short sentences", ge=0)

    def reason(self, row: Row) -> str | None:
        """Return the reason to drop a row, or None to keep it."""
        first, second = row[:2]
        if is_unsegmented(first) or is_unsegmented(second):
            lengths = (letters(first) / _WORD_LETTERS, letters(second) / _WORD_LETTERS)
        else:
            lengths = (words(first), words(second))
        is_above = max(lengths) > self.max * min(lengths) + self.slack
        return "length ratio" if is_above else None


@options
class CutOff(RowFilter):
    """Drop pairs with a side that ends within a sentence.

    Only the other side ends with a mark such as a full stop or a colon, and it has more letters: a
    Han character counts as three letters, and a kana as two. If neither side has such an end, it
    must have twice as many letters.
    """

    name = "cut_off"
    reasons = ("cut off",)

    max_share: float = setting(
        0.75, "maximum letters of the side without an end, as a share of the other's", ge=0
    )
    max_share_without_end: float = setting(
        0.5, "maximum letters of a side, as a share of the other's, if neither has an end", ge=0
    )
    min_letters: int = setting(
        20, "minimum letters of the other side, because the lengths of short texts vary", ge=0
    )

    def reason(self, row: Row) -> str | None:
        """Return the reason to drop a row, or None to keep it."""
        sides = [(letters(text), _has_end(text)) for text in row[:2]]
        (length, has_end), (longest, has_longest_end) = sorted(sides)
        share = self.max_share if has_longest_end else self.max_share_without_end
        is_cut = longest >= self.min_letters and length < share * longest and not has_end
        return "cut off" if is_cut else None


def _has_end(text: str) -> bool:
    return _END.search(text[-_LONGEST_END:]) is not None


@options
class Copied(RowFilter):
    """Drop pairs whose sides are identical or consist mostly of the same words. Not for
    paraphrases.

    Sides are identical if they have the same letters, marks and digits (NFKC, case folded). They
    are mostly copied if more than `max_share` of the distinct words on the side with more words (at
    least four) are also on the other side. Only words with at least three characters, including a
    letter, count. So names and code, which stay the same in translations, are accepted with a few
    words of prose.
    """

    name = "copied"
    reasons = ("identical sides", "mostly copied")

    max_share: float = setting(
        0.8, "maximum share of words on both sides; 1 drops only identical sides", ge=0, le=1
    )

    def reason(self, row: Row) -> str | None:
        """Return the reason to drop a row, or None to keep it."""
        first, second = row[:2]
        key = normalized_key(first)
        if key and key == normalized_key(second):
            return "identical sides"
        words = first.split(" ")
        if self._are_missing(words, second):  # most pairs
            return None
        first_words = _counted(words)
        second_words = _counted(second.split(" "))
        shared = len(first_words & second_words)
        count = max(len(first_words), len(second_words))
        is_copied = count >= _MIN_WORDS and shared > self.max_share * count
        return "mostly copied" if is_copied else None

    def _are_missing(self, words: list[str], text: str) -> bool:
        """Whether too many words for a copy are not even parts of words of a text."""
        limit = len(words) - self.max_share * len(words)
        missing = set[str]()
        for word in words:
            if word not in text and _counts(word):
                missing.add(word)
                if len(missing) >= limit:
                    return True
        return False


def _counted(words: list[str]) -> set[str]:
    return {word for word in words if _counts(word)}


def _counts(word: str) -> bool:
    """Whether a word is long enough and has a letter."""
    return len(word) >= _MIN_LETTERS and has_letter(word)


@options
class Script(RowFilter):
    """Drop pairs with a side that has no letters, or too few of the scripts of its language.

    A Han character counts as three letters and a kana as two, so that names and code in Latin
    letters do not outweigh a Chinese sentence. If the script of a language is unknown, its sides
    need only have letters.
    """

    name = "script"
    reasons = ("no letters", "wrong script")

    languages: tuple[str, str]
    min_share: float = setting(
        0.25, "minimum share of a side's letters in the scripts of its language", ge=0, le=1
    )

    def __post_init__(self) -> None:
        """Warn, once, about a language with an unknown script."""
        for code in self.languages:
            _warn_if_unknown(code)

    def reason(self, row: Row) -> str | None:
        """Return the reason to drop a row, or None to keep it."""
        first, second = self.languages
        reason = self._reason_of_side(row[0], scripts(first))
        return reason or self._reason_of_side(row[1], scripts(second))

    def _reason_of_side(self, text: str, names: tuple[str, ...]) -> str | None:
        if names[:1] == ("Latn",) and is_latin(text):
            return None if has_letter(text) else "no letters"
        if not names:
            return None if _OF_ANY_SCRIPT.search(text) else "no letters"
        own = count_characters(_of_scripts(names), text)
        weight = 1
        if "Hira" in names:
            weight = KANA_LETTERS
        elif "Hani" in names:
            weight = HAN_LETTERS
        if own and own * weight >= self.min_share * (own * weight + len(text)):
            return None  # even if all others were foreign letters
        count = len(_OF_ANY_SCRIPT.findall(text))
        if not count:
            return "no letters"
        is_wrong = own * weight < self.min_share * (own * weight + count - own)
        return "wrong script" if is_wrong else None


@cache
def _of_scripts(names: tuple[str, ...]) -> str:
    """Return the letters of some scripts, as the contents of a character class."""
    return "".join([rf"[\p{{L}}&&\p{{Script={name}}}]" for name in names])


@cache
def _warn_if_unknown(code: str) -> None:
    if not scripts(code):
        logger.warning(
            "script: the script of the language %s is unknown; its sides need only have letters",
            code,
        )
