"""Text to the ids of its words, and lists of the most frequent words.

Source: ACL 2019 ("Simple and Effective Paraphrastic Similarity from Parallel Translations"): the encoder Word, which
averages embeddings of the 200,000 most frequent words of text that Moses splits, and its sibling Trigram.
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
from st_paragram.core.tokenizers.string_lists import StringListTokenizer, most_frequent, read_strings

#: Of a regular expression, the insides of two classes: the characters of words, and what separates words.
WORD_CHARACTERS = r"\p{L}\p{M}\p{N}_"
SEPARATORS = r"\p{Z}\p{Cc}"
# A lone surrogate is not text, and no list of words can hold it.
_WORDS = regex.compile(rf"[{WORD_CHARACTERS}]+|[^{WORD_CHARACTERS}{SEPARATORS}\p{{Cs}}]")


class Splitter(str, Enum):
    """What splits a text into words: for "regex", a word is a run of `WORD_CHARACTERS`, or one other character."""

    REGEX = "regex"
    MOSES = "moses"


class WordTokenizer(StringListTokenizer):
    """Words to their places in a list, the most frequent first; the id behind the last word is the unknown one."""

    kind: ClassVar[str] = "word"

    def __init__(self, content: bytes, lower_case: bool = True, splitter: str = "regex", language: str = "en") -> None:
        """Read a list of words in the order of their ids, JSON in UTF-8; `language` is whose rules Moses takes."""
        self.lower_case, self.splitter = lower_case, Splitter(splitter)
        self._split = splitting(self.splitter, language)
        options = {"lower_case": lower_case, "splitter": self.splitter.value, "language": language}
        super().__init__(content, options, read_strings(content, "words"))

    def encode_normalized(self, texts: list[str], max_length: int | None = None, num_threads: int = 1) -> Encoded:
        """Encode texts, and count those that lose words by being cut."""
        return self.encoded(map(self._split, map(str.lower, texts) if self.lower_case else texts), max_length)


def train_words(
    texts: Iterable[str], size: int = 200_000, lower_case: bool = True, splitter: str = "regex", language: str = "en"
) -> bytes:
    """The most frequent words, at most `size`, as the content of a `WordTokenizer`, whose options the others are."""
    split = splitting(splitter, language)
    words = chain.from_iterable(map(split, map(str.lower, texts) if lower_case else texts))
    return most_frequent(Counter(words), size, "words")


def splitting(splitter: str, language: str) -> Callable[[str], list[str]]:
    """What gives the words of a text."""
    if Splitter(splitter) is Splitter.REGEX:
        return _WORDS.findall
    moses = require("sacremoses", "moses", 'splitter "moses"').MosesTokenizer(lang=language)
    return lambda text: moses.tokenize(valid(text), escape=False)
