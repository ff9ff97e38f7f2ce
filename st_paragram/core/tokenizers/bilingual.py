"""Tokenizers for two languages with separate vocabularies and one embedding matrix.

Rows of equal pieces are shared, or none are. Source: ACL 2019 ("Simple and Effective Paraphrastic
Similarity from Parallel Translations"): languages with a larger vocabulary overlap learn more from
each other; vocabularies without shared rows are the control.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.tokenizers.base import Encoded, FlatIds, TokenCounts, Tokenizer
from st_paragram.core.tokenizers.character_trigrams import CharacterTrigramTokenizer
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.core.tokenizers.words import WordTokenizer
from st_paragram.errors import SettingsError

Rows = NDArray[np.int64]
_INNER_KINDS: dict[str, Callable[..., Tokenizer]] = {
    "sentencepiece": SentencePieceTokenizer,
    "word": WordTokenizer,
    "trigram": CharacterTrigramTokenizer,
}


class Sharing(str, Enum):
    """Rows of the embedding matrix that the vocabularies of two languages share."""

    JOINT = "joint"
    STRING = "string"
    DISJOINT = "disjoint"


@dataclass(frozen=True)
class Vocabulary:
    """The tokenizer of one language, and the row of each of its ids in the embedding matrix."""

    tokenizer: Tokenizer
    rows: Rows

    @property
    def unknown_row(self) -> int:
        """Row of the unknown id."""
        return int(self.rows[self.tokenizer.unknown_id])

    @cached_property
    def narrow_rows(self) -> NDArray[Any]:
        """The rows as numbers that compiled means read."""
        return self.rows.astype(np.int32)

    @cached_property
    def ids(self) -> dict[int, int]:
        """Row of the embedding matrix -> id of the language."""
        return {row: number for number, row in enumerate(self.rows.tolist())}


class BilingualTokenizer(Tokenizer):
    """Encode texts in one of two languages; `in_language` returns the tokenizer for the other.

    The rows of the first language come first, in the order of its ids, then the rows of the second
    language that are not shared. With string sharing, equal pieces and the unknown ids share a row;
    disjoint vocabularies share no rows.
    """

    kind: ClassVar[str] = "bilingual"

    def __init__(
        self,
        content: bytes,
        inner: Mapping[str, Any],
        sharing: str,
        languages: Sequence[str],
        language: str,
    ) -> None:
        """Combine two tokenizers.

        Args:
            content: The contents of both, as joined by `both`.
            inner: `kind` and `options` of both.
            sharing: "string" or "disjoint".
            languages: The two languages.
            language: The language to encode.
        """
        if (
            Sharing(sharing) is Sharing.JOINT
            or len(set(languages)) != 2
            or language not in languages
        ):
            raise SettingsError(
                f"sharing {sharing!r}, languages {list(languages)}, language {language!r}; give"
                " sharing string or disjoint, two languages, and one of them to read"
            )
        end = 8 + int.from_bytes(content[:8], "little")
        first = _inner_tokenizer(content[8:end], **inner)
        second = _inner_tokenizer(content[end:], **inner)
        rows = np.arange(len(second)) + len(first)
        if Sharing(sharing) is Sharing.STRING:
            rows = _rows_by_string(first, second)
        self.content = content
        self.options: dict[str, Any] = {
            "inner": dict(inner),
            "sharing": Sharing(sharing).value,
            "languages": list(languages),
            "language": language,
        }
        self._vocabularies = {
            languages[0]: Vocabulary(first, np.arange(len(first))),
            languages[1]: Vocabulary(second, rows),
        }
        self._choose(language)

    def _choose(self, language: str) -> None:
        """Set the language to encode."""
        self.language = language
        self._vocabulary = self._vocabularies[language]
        self.unknown_id: int = self._vocabulary.unknown_row

    @classmethod
    def of(
        cls, first: Tokenizer, second: Tokenizer, sharing: Sharing, languages: Sequence[str]
    ) -> BilingualTokenizer:
        """Combine two tokenizers of one kind with equal options, to encode the first language."""
        inner = {"kind": first.kind, "options": first.options}
        if inner != {"kind": second.kind, "options": second.options}:
            raise SettingsError(
                f"a {first.kind} and a {second.kind} tokenizer; give the same kind and options"
            )
        content = both(first.content, second.content)
        return cls(content, inner, sharing.value, languages, languages[0])

    def in_language(self, language: str) -> BilingualTokenizer:
        """Return the tokenizer for one of the two languages; it shares the embedding matrix."""
        if language not in self._vocabularies:
            raise SettingsError(
                f"language is {language!r}; the model has {' and '.join(self.languages)}"
            )
        if language == self.language:
            return self
        # `__init__` would load both tokenizers again
        tokenizer = BilingualTokenizer.__new__(BilingualTokenizer)
        tokenizer.content = self.content
        tokenizer.options = {**self.options, "language": language}
        tokenizer._vocabularies = self._vocabularies
        tokenizer._choose(language)
        return tokenizer

    @property
    def languages(self) -> tuple[str, ...]:
        """The two languages."""
        return tuple(self._vocabularies)

    @property
    def inner_kind(self) -> str:
        """The kind of both tokenizers."""
        return self._vocabulary.tokenizer.kind

    @property
    def unknown_ids(self) -> tuple[int, ...]:
        """The rows of the unknown ids of both languages."""
        rows = {vocabulary.unknown_row for vocabulary in self._vocabularies.values()}
        return tuple(sorted(rows))

    def __len__(self) -> int:
        """Number of rows of the embedding matrix, for both languages."""
        return max(int(vocabulary.rows.max()) for vocabulary in self._vocabularies.values()) + 1

    def prepared(self, texts: Sequence[str]) -> list[str]:
        """Prepare texts with the tokenizer of the chosen language."""
        return self._vocabulary.tokenizer.prepared(texts)

    def count_tokens(self, texts: Sequence[str]) -> TokenCounts:
        """Count the tokens of texts in the chosen language."""
        return self._vocabulary.tokenizer.count_tokens(texts)

    def encode_rows(
        self, texts: Sequence[str], max_length: int | None = None, num_threads: int = 1
    ) -> FlatIds:
        """Encode texts like `encode`, with ids int32, which the compiled means read."""
        ids, offsets = self._vocabulary.tokenizer.encode_rows(texts, max_length, num_threads)
        return self._vocabulary.narrow_rows[ids], offsets

    def encode_normalized(
        self, texts: list[str], max_length: int | None = None, num_threads: int = 1
    ) -> Encoded:
        """Encode prepared texts in the chosen language."""
        tokenizer = self._vocabulary.tokenizer
        encoded = tokenizer.encode_normalized(texts, max_length, num_threads)
        return Encoded(self._vocabulary.rows[encoded.ids], encoded.offsets, encoded.cut)

    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids of the chosen language; ids of the other language count as unknown."""
        tokenizer = self._vocabulary.tokenizer
        own_ids = self._vocabulary.ids
        return tokenizer.decode([own_ids.get(int(row), tokenizer.unknown_id) for row in ids])

    def piece(self, piece_id: int) -> str | None:
        """Return the token of an id in the chosen language; None for ids of the other language."""
        number = self._vocabulary.ids.get(int(piece_id))
        if number is None:
            return None
        return self._vocabulary.tokenizer.piece(number)

    def shares_rows(self, other: Tokenizer) -> bool:
        """Whether the other tokenizer equals this one except for the chosen language."""
        if not isinstance(other, BilingualTokenizer) or self.content != other.content:
            return False
        return self.options == {**other.options, "language": self.language}


def _rows_by_string(first: Tokenizer, second: Tokenizer) -> Rows:
    """Return the row of each id of the second language; rows of equal tokens are shared."""
    rows_of_pieces = {}
    for number in range(len(first)):
        piece = first.piece(number)
        if piece:
            rows_of_pieces[piece] = number
    rows = np.empty(len(second), np.int64)
    next_row = len(first)
    for number in range(len(second)):
        row = rows_of_pieces.get(second.piece(number) or "")
        if number == second.unknown_id:
            row = first.unknown_id
        if row is None:
            row = next_row
            next_row += 1
        rows[number] = row
    return rows


def both(first: bytes, second: bytes) -> bytes:
    """Join two contents: the length of the first (uint64, little-endian), the first, the second."""
    return len(first).to_bytes(8, "little") + first + second


def _inner_tokenizer(content: bytes, kind: str, options: Mapping[str, Any]) -> Tokenizer:
    return _INNER_KINDS[kind](content, **options)
