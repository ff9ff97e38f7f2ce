"""Letters and words of any script, as parts of regular expressions and as functions.

The expressions are for version 1 of `regex`. A mark is a letter, too: without vowel signs and tone
marks, many words of Hindi, Thai or Burmese are the same.
"""

from __future__ import annotations

import regex

#: Scripts without spaces between words, as the contents of a character class.
UNSEGMENTED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Tibetan}\p{Myanmar}\p{Khmer}"
#: Letters, marks and digits, as the contents of a character class.
LETTERS = r"\p{L}\p{M}\p{N}"
#: A letter of a script without spaces, as the contents of a character class; with its marks; and
#: any other letter.
UNSPACED = rf"[{UNSEGMENTED}--\p{{M}}\p{{N}}]"
UNIT = rf"{UNSPACED}\p{{M}}*"
SPACED = rf"[{LETTERS}--{UNSPACED}]"

_WORD = regex.compile(rf"{UNIT}|{SPACED}+", regex.VERSION1)
_TWO_LETTERS = regex.compile(
    rf"[\p{{L}}\p{{N}}].*?[{LETTERS}]|\p{{M}}.*?[\p{{L}}\p{{N}}]", regex.DOTALL
)


def split_words(text: str) -> list[str]:
    """Return runs of letters, marks and digits.

    In scripts without spaces, each character with its marks is a word.
    """
    return _WORD.findall(text)


def has_two_letters(text: str) -> bool:
    """Whether a text has at least two letters, marks or digits, not only marks."""
    return _TWO_LETTERS.search(text) is not None
