"""Words of texts as ids, and lists of the most frequent words.

Source: ACL 2019 ("Simple and Effective Paraphrastic Similarity from Parallel Translations"): the
encoder Word, which averages the embeddings of the 200,000 most frequent words in Moses-tokenized
text, and its sibling Trigram.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from enum import Enum
from itertools import chain
from typing import ClassVar

import regex

from st_paragram.core.extras import require
from st_paragram.core.tokenizers.base import Encoded, valid
from st_paragram.core.tokenizers.string_lists import (
    StringListTokenizer,
    most_frequent,
    read_strings,
    read_texts,
)

#: Contents of two character classes of a regular expression: the characters of words, and
#: separators.
WORD_CHARACTERS = r"\p{L}\p{M}\p{N}_"
SEPARATORS = r"\p{Z}\p{Cc}"
# A lone surrogate is not text, so no list of words can hold it.
_WORDS = regex.compile(rf"[{WORD_CHARACTERS}]+|[^{WORD_CHARACTERS}{SEPARATORS}\p{{Cs}}]")


class Splitter(str, Enum):
    """Word splitters: for "regex", a word is a run of `WORD_CHARACTERS` or one other character."""

    REGEX = "regex"
    MOSES = "moses"


class WordTokenizer(StringListTokenizer):
    """The id of a word is its index in a list; the unknown id follows the last.

    The most frequent word is the first.
    """

    kind: ClassVar[str] = "word"

    def __init__(
        self,
        content: bytes,
        lower_case: bool = True,
        splitter: str = "regex",
        language: str = "en",
        characters: bool = False,
    ) -> None:
        """Read a list of words in the order of their ids, JSON in UTF-8.

        `language` selects the Moses rules. With `characters`, `CHARACTERS` are read as others.
        """
        self.lower_case = lower_case
        self.splitter: Splitter = Splitter(splitter)
        self.characters = characters
        self._split = splitting(self.splitter, language)
        options: dict[str, object] = {
            "lower_case": lower_case,
            "splitter": self.splitter.value,
            "language": language,
        }
        if characters:
            options["characters"] = True
        super().__init__(content, options, read_strings(content, "words"))

    def encode_normalized(
        self, texts: list[str], max_length: int | None = None, num_threads: int = 1
    ) -> Encoded:
        """Encode texts, and count truncated texts."""
        cased = read_texts(texts, self.lower_case, self.characters)
        return self.encoded(map(self._split, cased), max_length)


def train_words(
    texts: Iterable[str],
    size: int = 200_000,
    lower_case: bool = True,
    splitter: str = "regex",
    language: str = "en",
) -> bytes:
    """Return the most frequent words as the content of a `WordTokenizer` with the same options.

    Args:
        texts: The texts.
        size: Maximum number of words.
        lower_case: Lower-case the texts.
        splitter: Word splitter, regex or moses.
        language: Language of the Moses rules; it is not detected in the texts.
    """
    split = splitting(splitter, language)
    if lower_case:
        texts = map(str.lower, texts)
    words = chain.from_iterable(map(split, texts))
    return most_frequent(Counter(words), size, "words")


def splitting(splitter: str, language: str) -> Callable[[str], list[str]]:
    """Return the function that splits a text into words."""
    if Splitter(splitter) is Splitter.REGEX:
        return _WORDS.findall
    moses = require("sacremoses", "moses", 'splitter "moses"').MosesTokenizer(lang=language)
    return lambda text: moses.tokenize(valid(text), escape=False)
