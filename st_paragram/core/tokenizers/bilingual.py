"""A tokenizer for each of two languages, whose ids are rows of one table: shared where pieces are equal, or disjoint.

Source: ACL 2019 ("Simple and Effective Paraphrastic Similarity from Parallel Translations"): languages whose
vocabularies overlap more learn from each other, and vocabularies that share no row are the control.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.tokenizers.base import Encoded, FlatIds, Tokenizer, load_tokenizer
from st_paragram.errors import SettingsError, short

_LENGTH = struct.Struct("<Q")


class Sharing(str, Enum):
    """Which rows of the table the vocabularies of two languages share."""

    JOINT = "joint"
    STRING = "string"
    DISJOINT = "disjoint"


class BilingualTokenizer(Tokenizer):
    """Reads texts of one of its two languages; `in_language` gives the one that reads the other.

    The rows of the first language come first in the table, in the order of its ids; those of the second that it does
    not share follow. By string, equal pieces and the unknown ids share a row; disjoint vocabularies share none.
    """

    kind: ClassVar[str] = "bilingual"

    def __init__(
        self, content: bytes, inner: Mapping[str, Any], sharing: str, languages: Sequence[str], language: str
    ) -> None:
        """Put two tokenizers together.

        Args:
            content: as `both` makes it of the contents of the two.
            inner: their `kind` and their `options`.
            sharing: "string" or "disjoint".
            languages: two codes, of the first and of the second tokenizer.
            language: which of them is read.

        Raises:
            SettingsError: the content or one of the options is refused.
            ValueError: there is no such sharing.
        """
        self._content, self._inner = content, dict(inner)
        self.sharing = Sharing(sharing)
        self.languages = tuple(languages)
        self.language = language
        two = set(map(type, self.languages)) == {str} and len(self.languages) == len(set(self.languages)) == 2
        if self.sharing is Sharing.JOINT or not two or language not in self.languages:
            seen = f"sharing {sharing!r}, languages {list(languages)}, language {language!r}"
            raise SettingsError(f"{seen}; a table for two languages has sharing string or disjoint, and one is read")
        if set(self._inner) != {"kind", "options"}:
            raise SettingsError(f"inner is {short(self._inner)}; kind and options of two tokenizers are expected")
        first, second = (load_tokenizer(content=each, **self._inner) for each in _apart(content))
        self._tokenizers = first, second
        rows = _rows(first, second, self.sharing)
        side = self.languages.index(language)
        self._tokenizer, self._rows = self._tokenizers[side], rows[side]
        self._size = int(max(each.max() for each in rows)) + 1
        self._ids = {int(row): token for token, row in enumerate(self._rows)}
        self.unknown_id = int(self._rows[self._tokenizer.unknown_id])

    @classmethod
    def of(cls, first: Tokenizer, second: Tokenizer, sharing: Sharing, languages: Sequence[str]) -> BilingualTokenizer:
        """Put two tokenizers of one kind together; the first language is read.

        Raises:
            SettingsError: they are of different kinds, or have different options.
        """
        if (first.kind, first.options) != (second.kind, second.options):
            raise SettingsError(
                f"tokenizers of kinds {first.kind} and {second.kind}, or of other options; make them alike"
            )
        inner = {"kind": first.kind, "options": first.options}
        return cls(both(first.content, second.content), inner, sharing.value, languages, languages[0])

    def in_language(self, language: str) -> BilingualTokenizer:
        """The tokenizer that reads a language; its ids are rows of the same table.

        Raises:
            SettingsError: the language is none of the two.
        """
        return BilingualTokenizer(self._content, self._inner, self.sharing.value, self.languages, language)

    @property
    def content(self) -> bytes:
        """The contents of both tokenizers, see `both`."""
        return self._content

    @property
    def options(self) -> dict[str, Any]:
        """The arguments besides the content."""
        languages = list(self.languages)
        return {
            "inner": self._inner,
            "sharing": self.sharing.value,
            "languages": languages,
            "language": self.language,
        }

    @property
    def inner_kind(self) -> str:
        """The kind of both tokenizers."""
        return str(self._inner["kind"])

    @property
    def overlap(self) -> float:
        """Share of the first language's pieces that are pieces of the second, |A and B| / |A|."""
        first, second = ({piece for piece in _pieces(each) if piece} for each in self._tokenizers)
        return len(first & second) / len(first)

    def __len__(self) -> int:
        """Rows of the table, of both languages."""
        return self._size

    def encode(self, texts: Sequence[str], max_length: int | None = None, num_threads: int = 1) -> FlatIds:
        """Encode texts of the language that is read; arguments and result as in `Tokenizer`."""
        ids, offsets = self._tokenizer.encode(texts, max_length, num_threads)
        return self._rows[ids], offsets

    def encode_normalized(self, texts: list[str], max_length: int | None = None, num_threads: int = 1) -> Encoded:
        """Encode texts of the language that is read, and count those that were cut; as in `Tokenizer`."""
        encoded = self._tokenizer.encode_normalized(texts, max_length, num_threads)
        return replace(encoded, ids=self._rows[encoded.ids])

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids of the language that is read; other rows of the table are unknown."""
        unknown = self._tokenizer.unknown_id
        return self._tokenizer.decode([self._ids.get(int(each), unknown) for each in ids])

    def piece(self, piece_id: int) -> str | None:
        """What a row stands for in the language that is read; None for rows of the other alone."""
        token = self._ids.get(int(piece_id))
        return None if token is None else self._tokenizer.piece(token)

    def shares_rows(self, other: Tokenizer) -> bool:
        """Whether the other is this one, or reads the other language."""
        return isinstance(other, BilingualTokenizer) and self == other.in_language(self.language)


def both(first: bytes, second: bytes) -> bytes:
    """Two contents as one: the length of the first (uint64, little-endian), the first, the second."""
    return _LENGTH.pack(len(first)) + first + second


def _apart(content: bytes) -> tuple[bytes, bytes]:
    """What `both` put together.

    Raises:
        SettingsError: it did not.
    """
    if len(content) < _LENGTH.size or (length := _LENGTH.unpack_from(content)[0]) > len(content) - _LENGTH.size:
        raise SettingsError(f"no vocabularies of two languages ({len(content)} bytes)")
    end = _LENGTH.size + length
    return content[_LENGTH.size : end], content[end:]


def _rows(first: Tokenizer, second: Tokenizer, sharing: Sharing) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The row of each id of the first tokenizer, and of the second, int64."""
    rows = np.arange(len(second)) + len(first)
    if sharing is Sharing.STRING:
        known = {piece: token for token, piece in enumerate(_pieces(first)) if piece}
        shared = np.array([known.get(piece, -1) if piece else -1 for piece in _pieces(second)])
        shared[second.unknown_id] = first.unknown_id
        own = shared < 0
        rows = np.where(own, len(first) + np.cumsum(own) - 1, shared)
    return np.arange(len(first)), rows


def _pieces(tokenizer: Tokenizer) -> list[str | None]:
    return [tokenizer.piece(token) for token in range(len(tokenizer))]
