"""Which pairs stay: the length filter, in words, or in characters where a script writes no spaces."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

# Han (with kana and the extension planes), Thai, Lao, Tibetan, Myanmar, Khmer.
_SPACELESS = re.compile(
    "[\u0e00-\u0e7f\u0e80-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003134f]"
)


class LengthOn(str, Enum):
    """The sides that the length filter looks at."""

    BOTH = "both"
    ENGLISH = "english"


class DropReason(str, Enum):
    """Why a row does not reach the store."""

    EMPTY = "empty side"
    SHORT = "too short"
    LONG = "too long"
    NUL = "NUL byte"
    INVALID = "not UTF-8"
    DUPLICATE = "duplicate"


@dataclass(frozen=True)
class LengthFilter:
    """Keep pairs whose sides are neither too short nor too long.

    The original procedure counts whitespace tokens of the English side, 3 to 100 of them (EMNLP 2022,
    section 3); here both sides count unless `length_on` says otherwise.

    Attributes:
        min_length: Least number of words, or of characters of a side in a script without spaces.
        max_length: Largest number of words.
        max_characters: Largest number of characters, spaces left out, of a side in a script without spaces.
        length_on: The sides looked at; an empty side is dropped in any case.
    """

    min_length: int = 3
    max_length: int = 100
    max_characters: int = 200
    length_on: LengthOn = LengthOn.BOTH

    def reject(self, english: list[str], other: list[str]) -> DropReason | None:
        """Return the reason to drop a pair, or None; its sides come as their words (`str.split`)."""
        if not english or not other:
            return DropReason.EMPTY
        reason = self._reject_side(english)
        return reason if reason or self.length_on is LengthOn.ENGLISH else self._reject_side(other)

    def _reject_side(self, words: list[str]) -> DropReason | None:
        text = "".join(words)
        length, longest = len(words), self.max_length
        if not text.isascii() and _SPACELESS.search(text) and without_spaces(words):
            length, longest = len(text), self.max_characters
        if length < self.min_length:
            return DropReason.SHORT
        return DropReason.LONG if length > longest else None


def without_spaces(words: list[str]) -> bool:
    """Tell whether a text is written mostly in a script without spaces between words.

    It is if it has more characters of such scripts (Han, kana, Thai, Lao, Tibetan, Myanmar, Khmer) than words
    with letters of other scripts.
    """
    characters = len(_SPACELESS.findall("".join(words)))
    other_words = sum(1 for word in words for part in _SPACELESS.split(word) if any(map(str.isalpha, part)))
    return characters > other_words
