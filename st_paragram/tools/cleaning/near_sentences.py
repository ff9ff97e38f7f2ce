"""Sentences that differ from one of many by a single word, changed, added or left out."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence

from st_paragram.tools.cleaning.normalized_key import normalized_key
from st_paragram.tools.cleaning.unsegmented_scripts import Measures

Words = tuple[str, ...]

_NO_WORD = re.compile(r"[^\w\s]|_")
_LOWER = bytes(range(256)).lower()
_NO_WORD_ASCII = bytes(code for code in range(128) if not chr(code).isalnum() and not chr(code).isspace())
# Of a shorter sentence, one word is too large a part: "I like your car", "I like your dog".
_FEWEST_WORDS, _FEWEST_CHARACTERS = 6, 12


class NearSentences:
    """Finds sentences of at least six words again, even with one word of difference.

    In a script without spaces every character is a word, and there must be twelve. A single difference leaves the first
    half or the last half of the words as it is, so sentences are looked up by their halves, and only those found so are
    compared word by word.

    Args:
        sentences: The sentences to find again.
    """

    def __init__(self, sentences: Iterable[str]) -> None:
        self._halves: defaultdict[tuple[str, Words], list[Words]] = defaultdict(list)
        for words in dict.fromkeys(_words(*given) for given in _with_kind(list(sentences))):
            if words:
                for half in {_half(len(words) + change) for change in (-1, 0, 1)}:
                    self._halves["first", words[:half]].append(words)
                    self._halves["last", words[-half:]].append(words)

    def near(self, texts: Sequence[str]) -> list[bool]:
        """Whether each of n texts is one of the sentences, or differs from one by a word changed, added or left out."""
        if not self._halves:
            return [False] * len(texts)
        return [self._near(_words(text, unsegmented, fewer=1)) for text, unsegmented in _with_kind(texts)]

    def _near(self, words: Words) -> bool:
        if not words:
            return False
        half = _half(len(words))
        found = self._halves.get(("first", words[:half]), ()), self._halves.get(("last", words[-half:]), ())
        return any(_differ_by_one(words, other) for others in found for other in others)


def _half(words: int) -> int:
    """So many words, the first or the last ones of either sentence, are untouched by a single difference."""
    return (words - 1) // 2


def _with_kind(texts: Sequence[str]) -> Iterable[tuple[str, bool]]:
    return zip(texts, Measures(texts).unsegmented.tolist(), strict=True)


def _words(text: str, unsegmented: bool, fewer: int = 0) -> Words:
    """The words of a text by their letters and digits; none if they are too few."""
    if unsegmented:
        characters = tuple(normalized_key(text))
        return characters if len(characters) >= _FEWEST_CHARACTERS - fewer else ()
    if text.count(" ") + 1 < _FEWEST_WORDS - fewer:  # compatibility forms make few texts longer
        return ()
    if text.isascii():  # far faster
        words = tuple(text.encode("ascii").translate(_LOWER, _NO_WORD_ASCII).decode("ascii").split())
    else:
        words = tuple(_NO_WORD.sub("", unicodedata.normalize("NFKC", text).casefold()).split())
    return words if len(words) >= _FEWEST_WORDS - fewer else ()


def _differ_by_one(one: Words, other: Words) -> bool:
    """Whether at most one word must be changed, added or left out to make one of the other."""
    shorter, longer = sorted((one, other), key=len)
    if len(longer) - len(shorter) > 1:
        return False
    start = next((i for i, word in enumerate(shorter) if word != longer[i]), len(shorter))
    rest = start + (len(longer) == len(shorter))
    return shorter[rest:] == longer[start + 1 :]
