"""Scripts that write no spaces between words: Han, kana, Thai, Lao, Tibetan, Myanmar, Khmer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from st_paragram.tools.cleaning.code_points import CodePoints, letters_table, table

_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_KANA = "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_OTHERS = "\u0e00-\u0e7f\u0e80-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff"
UNSEGMENTED = f"{_OTHERS}{_HAN}{_KANA}"
"""Their characters, as the inside of a character class."""
_CHARACTER = re.compile(f"[{UNSEGMENTED}]")

# How many letters of an alphabet say as much as one character: 2.85, measured on English and Chinese translations.
HAN_LETTERS, KANA_LETTERS = 3, 2

_UNSEGMENTED, _SPACE, _LETTER = 1, 2, 4


class Measures:
    """The lengths of n texts, in several units.

    Attributes:
        words: Words between single spaces, int64 (n); 1 for an empty text.
        characters: Characters that are not spaces, int64 (n).
        unsegmented: Whether a text is mostly in a script without spaces between words, bool (n): it has more characters
            of such scripts than words with letters of other scripts.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._points = CodePoints(texts)
        kinds = _kinds().take(self._points.codes)
        spaces = self._points.count(kinds == _SPACE) - 1  # the newline is one
        self.words: NDArray[np.int64] = spaces + 1
        self.characters: NDArray[np.int64] = self._points.lengths - spaces
        self.unsegmented: NDArray[np.bool_] = np.zeros(len(texts), np.bool_)
        if (own := kinds == _UNSEGMENTED).any():
            some = np.flatnonzero(self._points.count(own)).tolist()
            self.unsegmented[some] = _mostly_unsegmented([texts[index] for index in some])

    def letters(self) -> NDArray[np.int64]:
        """Characters that are not spaces, where Han counts as 3 and kana as 2, to compare scripts; int64 (n)."""
        return self.characters + self._points.total(_extra_letters().take(self._points.codes))


def is_unsegmented(text: str) -> bool:
    """Whether a text is written mostly in a script without spaces between words."""
    text = " ".join(text.split())
    return _CHARACTER.search(text) is not None and bool(Measures([text]).unsegmented[0])


def _mostly_unsegmented(texts: Sequence[str]) -> NDArray[np.bool_]:
    points = CodePoints(texts)
    kinds = _kinds().take(points.codes)
    telling = np.flatnonzero(kinds)  # digits and signs do not end a word
    letters = kinds[telling] == _LETTER
    begins = np.zeros(len(kinds), np.bool_)
    begins[telling[letters & ~np.concatenate(([False], letters[:-1]))]] = True
    return points.count(kinds == _UNSEGMENTED) > points.count(begins)


@cache
def _kinds() -> NDArray[np.uint8]:
    kinds = np.where(letters_table(), np.uint8(_LETTER), np.uint8(0))
    kinds[table({UNSEGMENTED: 1}) > 0] = _UNSEGMENTED
    kinds[[ord(" "), ord("\n")]] = _SPACE, _SPACE
    return kinds


@cache
def _extra_letters() -> NDArray[np.uint8]:
    return table({_HAN: HAN_LETTERS - 1, _KANA: KANA_LETTERS - 1})
