"""Filters that look at the shape of rows: `length`, `ratio`, `copied` and `script`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache
from typing import ClassVar, Literal

import regex

from st_paragram.core.settings import setting
from st_paragram.errors import SettingsError
from st_paragram.tools.cleaning.base import Row, RowFilter, options
from st_paragram.tools.cleaning.languages import scripts
from st_paragram.tools.cleaning.text import (
    HAN_LETTERS,
    KANA_LETTERS,
    is_unsegmented,
    letters,
    normalized_key,
    words,
)

logger = logging.getLogger(__name__)

_WORD = 5  # letters that count as a word in scripts without spaces
# minimum of a word and of a side to count as copied, since names are the same
_FEWEST_LETTERS, _FEWEST_WORDS = 3, 4


@options
class Length(RowFilter):
    """Drop pairs with a side that is too short or too long.

    The original procedure allows 3 to 100 whitespace tokens on the English side (EMNLP 2022). Here,
    both sides are checked by default (see `length_on`).
    """

    name: ClassVar[str] = "length"
    reasons: ClassVar[tuple[str, ...]] = ("empty side", "too short", "too long")

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
            if (value := getattr(self, option)) < self.min_length:
                raise SettingsError(
                    f"{option} is {value}; it must be at least min_length ({self.min_length})"
                )

    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return for each row the reason to drop it, or None to keep it."""
        checked = 1 if self.length_on == "english" else 2
        return [
            (
                next(filter(None, map(self._reason, row[:checked])), None)
                if row[0] and row[1]
                else self.reasons[0]
            )
            for row in rows
        ]

    def _reason(self, text: str) -> str | None:
        unsegmented = is_unsegmented(text)
        length = len(text) - text.count(" ") if unsegmented else words(text)
        most = self.max_characters if unsegmented else self.max_length
        _, short, long = self.reasons
        return short if length < self.min_length else long if length > most else None


@options
class Ratio(RowFilter):
    """Drop pairs whose longer side has more words than `max` times the words of the shorter side
    plus `slack`.

    If a side is in a script without spaces between words, every five letters of both sides count as
    a word; a Han character counts as three letters and a kana as two, as measured on translations.
    """

    name: ClassVar[str] = "ratio"
    reasons: ClassVar[tuple[str, ...]] = ("length ratio",)

    max: float = setting(2.5, "maximum ratio of the two sides' numbers of words", ge=1)
    slack: float = setting(3.0, "words allowed in addition to the ratio, for short sentences", ge=0)

    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return "length ratio" for rows above it."""
        return [self.reasons[0] if self._differ(row[0], row[1]) else None for row in rows]

    def _differ(self, first: str, second: str) -> bool:
        if is_unsegmented(first) or is_unsegmented(second):
            shorter, longer = sorted((letters(first) / _WORD, letters(second) / _WORD))
        else:
            shorter, longer = sorted((words(first), words(second)))
        return longer > self.max * shorter + self.slack


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

    name: ClassVar[str] = "copied"
    reasons: ClassVar[tuple[str, ...]] = ("identical sides", "mostly copied")

    max_share: float = setting(
        0.8, "maximum share of words on both sides; 1 drops only identical sides", ge=0, le=1
    )

    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return for each row the reason to drop it, or None to keep it."""
        return [self._reason(row[0], row[1]) for row in rows]

    def _reason(self, first: str, second: str) -> str | None:
        identical, copied = self.reasons
        if normalized_key(first) == normalized_key(second) != "":
            return identical
        one, other = _counted(first), _counted(second)
        most = max(len(one), len(other))
        return (
            copied if most >= _FEWEST_WORDS and len(one & other) > self.max_share * most else None
        )


def _counted(text: str) -> set[str]:
    return {
        word
        for word in text.split(" ")
        if len(word) >= _FEWEST_LETTERS and any(map(str.isalpha, word))
    }


@options
class Script(RowFilter):
    """Drop pairs with a side that has no letters, or too few letters of the scripts of its
    language.

    A Han character counts as three letters and a kana as two, so that names and code in Latin
    letters do not outweigh a Chinese sentence. If the script of a language is unknown, its sides
    need only have letters.
    """

    name: ClassVar[str] = "script"
    reasons: ClassVar[tuple[str, ...]] = ("no letters", "wrong script")

    languages: tuple[str, str]
    min_share: float = setting(
        0.25, "minimum share of a side's letters in the scripts of its language", ge=0, le=1
    )

    def __post_init__(self) -> None:
        """Warn, once, about a language with an unknown script."""
        for code in self.languages:
            _warn_if_unknown(code)

    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return for each row the reason to drop it, or None to keep it."""
        first, second = map(scripts, self.languages)
        return [self._reason(row[0], first) or self._reason(row[1], second) for row in rows]

    def _reason(self, text: str, names: tuple[str, ...]) -> str | None:
        no_letters, wrong = self.reasons
        if text.isascii() and names[:1] == ("Latn",):
            return None if any(map(str.isalpha, text)) else no_letters
        count = len(_OF_ANY_SCRIPT.findall(text))
        if not count or not names:
            return None if count else no_letters
        own = len(_of_scripts(names).findall(text))
        foreign = count - own
        own *= KANA_LETTERS if "Hira" in names else HAN_LETTERS if "Hani" in names else 1
        return wrong if own < self.min_share * (own + foreign) else None


# Letters of a script; letters without a script are symbols like the micro sign, letters of formulas
# or modifiers.
_OF_ANY_SCRIPT = regex.compile(r"[\p{L}--\p{Script=Zyyy}--\p{Script=Zinh}]", regex.VERSION1)


@cache
def _of_scripts(names: tuple[str, ...]) -> regex.Pattern[str]:
    return regex.compile(
        "[" + "".join(rf"[\p{{L}}&&\p{{Script={name}}}]" for name in names) + "]", regex.VERSION1
    )


@cache
def _warn_if_unknown(code: str) -> None:
    if not scripts(code):
        logger.warning(
            "script: the script of the language %s is unknown; its sides need only have letters",
            code,
        )
