"""A list of words as a Hugging Face `tokenizers` tokenizer that gives the same ids.

Two tables of Unicode may differ in their newest characters. So the ranges of characters of words are in the tokenizer
one by one, as the package's own regular expression has them. Lower-casing is each side's own: a capital
letter that only one of the tables knows may be an unknown word on the other side.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING

import regex

from st_paragram.core.tokenizers.stock_conversion import lower_casing
from st_paragram.core.tokenizers.words import SEPARATORS, WORD_CHARACTERS, Splitter, WordTokenizer
from st_paragram.errors import ModelDirectoryError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_UNKNOWN = "<unknown word>"  # no word has a space in it


def convert_words(tokenizer: WordTokenizer) -> Tokenizer:
    """Convert a list of words; `encode(text).ids` are then its ids, the unknown one included.

    Args:
        tokenizer: with the splitter "regex".

    Returns:
        A tokenizer with as many tokens as `tokenizer` has ids, in the same order. It adds no special tokens.

    Raises:
        ModelDirectoryError: another splitter.
    """
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    if tokenizer.splitter is not Splitter.REGEX:
        raise ModelDirectoryError(
            'the splitter "moses" of this tokenizer: Moses cannot be written as a tokenizer.json; '
            'make a vocabulary with the splitter "regex"'
        )
    vocabulary = {word: place for place, word in enumerate([*tokenizer.words, _UNKNOWN])}
    converted = Tokenizer(models.WordLevel(vocabulary, unk_token=_UNKNOWN))
    if tokenizer.lower_case:
        converted.normalizer = normalizers.Sequence(lower_casing())
    characters = _word_characters()
    words = Regex(f"[{characters}]+|[^{characters}{SEPARATORS}]")
    converted.pre_tokenizer = pre_tokenizers.Split(words, "removed", invert=True)
    return converted


@lru_cache(maxsize=1)
def _word_characters() -> str:
    """The inside of a regular expression's class: the ranges of all characters of words."""
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    spans = (found.span() for found in regex.finditer(f"[{WORD_CHARACTERS}]+", every))
    return "".join(rf"\x{{{start:x}}}-\x{{{end - 1:x}}}" for start, end in spans)
