"""Which language the texts of a side look like: by their letters, and by their frequent words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache

from st_paragram.tools.checks.frequent_words import Words, language_of, other_language
from st_paragram.tools.cleaning.languages import scripts
from st_paragram.tools.cleaning.script import SCRIPTS
from st_paragram.tools.cleaning.unsegmented_scripts import HAN_LETTERS, KANA_LETTERS

# Measured on 262 texts in eight languages and on Tatoeba's 112 test sets: the words of a wrong language had less than
# half the share of those of the right one, and 2,478 of 2,479 wrong declarations of these sets are above both limits.
_LEAST_SHARE, _RATIO = 0.06, 2.0
_CLEAR_SHARE = 0.2  # of English words, in a text that should be in a language of unknown words; others: 0.14 at most
_OWN_LETTERS = 0.1
_FEWEST_WORDS, _FEWEST_LETTERS = 200, 500
_WEIGHTS = {"Han": HAN_LETTERS, "Kana": KANA_LETTERS}


class Side:
    """The texts of one side of a sample."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.words = Words(texts)
        self.letters: Counter[str] = Counter()
        for character, count in Counter("".join(texts)).items():
            if script := _script(character):
                self.letters[script] += count * _WEIGHTS.get(script, 1)

    def looks_like(self, code: str) -> str | None:
        """The name of what the texts look like; None if that may well be the language `code`, or if it is unclear."""
        known, total = scripts(code), self.letters.total()
        foreign = known and total >= _FEWEST_LETTERS and self._letters(known) < _OWN_LETTERS * total
        if self.words.total >= _FEWEST_WORDS:
            if found := other_language(self.words, code, _LEAST_SHARE, _RATIO):
                return found.name
            if (foreign or language_of(code) is None) and self.share("en") >= _CLEAR_SHARE:
                return "English"
        return f"text in {self.letters.most_common(1)[0][0]} letters" if foreign else None

    def is_in(self, code: str) -> bool:
        """Whether the texts have frequent words of a language: enough to believe that they are in it."""
        return self.words.total >= _FEWEST_WORDS and self.share(code) >= _LEAST_SHARE

    def share(self, code: str) -> float:
        """The share of frequent words of a language among the words; 0 for a language of unknown words."""
        language = language_of(code)
        return self.words.share(language.words) if language else 0.0

    def _letters(self, names: Sequence[str]) -> int:
        return sum(self.letters[name] for name in names)


@cache
def _script(character: str) -> str | None:
    """The script of a letter."""
    if not character.isalpha():
        return None
    return next((name for name, pattern in _patterns().items() if pattern.match(character)), None)


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    return {name: re.compile(f"[{characters}]") for name, characters in SCRIPTS.items()}
