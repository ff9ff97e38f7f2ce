"""Text to the ids of its words, and lists of the most frequent words.

Source: ACL 2019 ("Simple and Effective Paraphrastic Similarity from Parallel Translations"): the encoder
Word, which averages embeddings of the 200,000 most frequent words of text that Moses splits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from itertools import chain, repeat
from typing import Any, ClassVar

import numpy as np
import regex

from st_paragram.core.extras import require
from st_paragram.core.tokenizers.base import Encoded, FlatIds, Tokenizer
from st_paragram.core.tokenizers.string_lists import checked_switch, read_strings, write_strings
from st_paragram.errors import SettingsError, TextError, short

#: The characters of words: of a regular expression, the inside of a class.
WORD_CHARACTERS = r"\p{L}\p{M}\p{N}_"
#: What separates words and is part of none.
SEPARATORS = r"\p{Z}\p{Cc}"
# A lone surrogate is not text, and no list of words can hold it.
_WORDS = regex.compile(rf"[{WORD_CHARACTERS}]+|[^{WORD_CHARACTERS}{SEPARATORS}\p{{Cs}}]")
_UNKNOWN = "⁇"  # as sentencepiece shows it


class Splitter(str, Enum):
    """What splits a text into words."""

    REGEX = "regex"
    MOSES = "moses"


class WordTokenizer(Tokenizer):
    """Words to their places in a list, the most frequent first; the id behind the last word is the unknown one.

    With the splitter "regex", a run of letters, marks, digits and underscores is a word, and every other character but
    separators and control characters is one by itself.
    """

    kind: ClassVar[str] = "word"

    def __init__(
        self,
        content: bytes,
        lower_case: bool = True,
        splitter: Splitter | str = Splitter.REGEX,
        language: str = "en",
    ) -> None:
        """Read a list of words.

        Args:
            content: the words in the order of their ids, a JSON list in UTF-8.
            lower_case: apply `str.lower` first.
            splitter: what splits words.
            language: whose rules Moses takes.

        Raises:
            SettingsError: the bytes are not a list of words, or `lower_case` or `language` is of another type.
            ValueError: there is no such splitter.
            MissingExtraError: Moses is asked for and not installed.
        """
        self.lower_case = checked_switch("lower_case", lower_case)
        self.splitter = Splitter(splitter)
        self.language = language
        self._split = _splitter(self.splitter, language)
        self._content = content
        #: The words in the order of their ids.
        self.words = read_strings(content, "words")
        if " ".join(self.words).split() != self.words:
            spaced = next(word for word in self.words if word.split() != [word])
            raise SettingsError(f"not a list of words ({len(content):,} bytes): {short(spaced)} has a space in it")
        self.unknown_id = len(self.words)
        self._ids = {word: place for place, word in enumerate(self.words)}

    @property
    def content(self) -> bytes:
        """The list of words, JSON in UTF-8."""
        return self._content

    @property
    def options(self) -> dict[str, Any]:
        """`lower_case`, `splitter` and `language`."""
        return {"lower_case": self.lower_case, "splitter": self.splitter.value, "language": self.language}

    def __len__(self) -> int:
        """Number of words, and one for the unknown id."""
        return len(self.words) + 1

    def encode(self, texts: Sequence[str], max_length: int | None = None, num_threads: int = 1) -> FlatIds:
        """Encode texts as flat ids.

        Args:
            texts: N strings.
            max_length: keep at most this many words of a text (counted before unknown words are dropped).
            num_threads: ignored; one thread does the work.

        Returns:
            ids, int64 (total,), and offsets, int64 (N + 1,): text i is ids[offsets[i]:offsets[i + 1]].
        """
        encoded = self.encode_normalized(list(texts), max_length, num_threads)
        return encoded.ids, encoded.offsets

    def encode_normalized(self, texts: list[str], max_length: int | None = None, num_threads: int = 1) -> Encoded:
        """Encode texts as `encode` does, and count those that were cut."""
        cased = map(str.lower, texts) if self.lower_case else texts
        unknown = repeat(self.unknown_id)
        rows = [list(map(self._ids.get, self._split(text), unknown)) for text in cased]
        counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        ids = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(counts.sum()))
        return Encoded.of(ids, counts, self.unknown_id, max_length)

    def decode(self, ids: Sequence[int]) -> str:
        """The words with spaces between them; an unknown id shows as `⁇`."""
        return " ".join(self.piece(int(each)) or _UNKNOWN for each in ids)

    def piece(self, piece_id: int) -> str | None:
        """The word; None for the unknown id."""
        return None if piece_id == self.unknown_id else self.words[piece_id]


def count_words(
    texts: Iterable[str], lower_case: bool = True, splitter: Splitter | str = Splitter.REGEX, language: str = "en"
) -> Counter[str]:
    """How often each word occurs.

    Args:
        texts: read once.
        lower_case: apply `str.lower` first.
        splitter: what splits words.
        language: whose rules Moses takes.

    Raises:
        SettingsError: `lower_case` is neither true nor false, or `language` is not a string.
        ValueError: there is no such splitter.
        MissingExtraError: Moses is asked for and not installed.
    """
    split = _splitter(Splitter(splitter), language)
    cased = map(str.lower, texts) if checked_switch("lower_case", lower_case) else texts
    return Counter(chain.from_iterable(map(split, cased)))


def train_words(
    texts: Iterable[str],
    size: int = 200_000,
    lower_case: bool = True,
    splitter: Splitter | str = Splitter.REGEX,
    language: str = "en",
) -> bytes:
    """The most frequent words, as the content of a `WordTokenizer`; the order of the texts does not matter.

    Args:
        texts: read once.
        size: words to keep; of equally frequent ones those that sort first.
        lower_case: apply `str.lower` first.
        splitter: what splits words.
        language: whose rules Moses takes.

    Raises:
        TextError: there is no word in the texts.
        SettingsError: a size below 1, or another wrong value.
        ValueError: there is no such splitter.
        MissingExtraError: Moses is asked for and not installed.
    """
    if size < 1:
        raise SettingsError(f"vocabulary size is {size} words; give at least 1")
    counts = count_words(texts, lower_case, splitter, language)
    if not counts:
        raise TextError("no words to build a vocabulary from; give more text")
    return write_strings(sorted(counts, key=lambda word: (-counts[word], word))[:size])


def _splitter(splitter: Splitter, language: str) -> Callable[[str], list[str]]:
    """What gives the words of a text.

    Raises:
        SettingsError: the language is not a string.
        MissingExtraError: Moses is asked for and not installed.
    """
    if not isinstance(language, str):
        raise SettingsError(f"language is {short(language)}; a code like en is expected")
    if splitter is Splitter.REGEX:
        return _WORDS.findall
    moses = require("sacremoses", "moses", 'splitter "moses"').MosesTokenizer(lang=language)

    def split(text: str) -> list[str]:
        """A lone surrogate becomes "?", which a list of words can hold."""
        words: list[str] = moses.tokenize(text.encode("utf-8", "replace").decode("utf-8"), escape=False)
        return words

    return split
