"""The base class of tokenizers: text to flat ids and back, and serialization."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.arrays import Integers
from st_paragram.core.tokenizers.flat_ids import drop_unknown, truncate
from st_paragram.errors import SettingsError, short

#: Ids of N texts in one array, and the offsets of texts, as returned by `Tokenizer.encode`.
FlatIds = tuple[Integers, Integers]

#: Kinds of tokens: without text (unknown, a space), only digits and signs, with a letter.
NO_TEXT = 0
SIGNS = 1
LETTERS = 2
_SPACES = "\u2581\u0120 "  # marks of a space in sentencepiece and in GPT-2's tokens, and a space
_LETTER = re.compile(r"[^\W\d_]")
_FEW = 20_000  # ids for which a table of all tokens takes longer than the ids


def has_letter(text: str) -> bool:
    """Whether a text has a letter of any script."""
    return _LETTER.search(text) is not None


def kind_of(piece: str | None) -> int:
    """Return the kind of a token, as `NO_TEXT`, `SIGNS` or `LETTERS`."""
    if not piece or not piece.strip(_SPACES):
        return NO_TEXT
    return LETTERS if has_letter(piece) else SIGNS


class Encoded(NamedTuple):
    """Texts as `FlatIds` without unknown ids, and how many of the texts were truncated."""

    ids: NDArray[Any]
    offsets: Integers
    cut: int
    tokens: int = 0  # number of ids before unknown ids were dropped, if it was counted

    @classmethod
    def of(
        cls, ids: NDArray[Any], counts: Integers, unknown_id: int, max_length: int | None
    ) -> Encoded:
        """Truncate texts of `counts` ids, (N,), to `max_length` ids, then drop unknown ids."""
        cut = 0
        if max_length is not None:
            cut = int((counts > max_length).sum())
            ids, counts = truncate(ids, counts, max_length)
        known_ids, offsets = drop_unknown(ids, counts, unknown_id)
        return cls(known_ids, offsets, cut, tokens=len(ids))


class TokenCounts(NamedTuple):
    """Numbers of tokens of texts."""

    tokens: int
    unknown: int  # of these tokens


class Tokenizer(ABC):
    """Convert text to ids.

    Unknown pieces are dropped; a text without known pieces is one unknown id (EMNLP 2022).
    `Class(content, **options)` creates a tokenizer. Equality, hash and pickling depend on kind,
    content and options.
    """

    kind: ClassVar[str]  # as named in stores and model directories
    unknown_id: int  # has a row in the embedding matrix like any other id
    content: bytes  # the vocabulary, as the bytes of a file
    options: dict[str, Any]  # the other arguments of the class, as JSON values

    @property
    def unknown_ids(self) -> tuple[int, ...]:
        """Rows of the embedding matrix for texts without a known token, one or two."""
        return (self.unknown_id,)

    @abstractmethod
    def __len__(self) -> int:
        """Number of ids."""

    def in_language(self, language: str) -> Tokenizer:
        """Return the tokenizer for one language of a model with two vocabularies."""
        raise SettingsError(
            f"language is {language!r}, but the model has one vocabulary; leave the language out"
        )

    def encode(
        self, texts: Sequence[str], max_length: int | None = None, num_threads: int = 1
    ) -> FlatIds:
        """Encode N texts as ids, int64 (total,), and offsets, int64 (N + 1,).

        Text i is ids[offsets[i]:offsets[i + 1]]. At most `max_length` ids of a text are kept,
        counted before unknown ids are dropped.
        """
        if isinstance(texts, str):
            raise SettingsError(f"{short(texts)} is one text; give a list of texts")
        encoded = self.encode_normalized(self.prepared(texts), max_length, num_threads)
        return encoded.ids, encoded.offsets

    def count_tokens(self, texts: Sequence[str]) -> TokenCounts:
        """Count the tokens of texts, including unknown tokens."""
        encoded = self.encode_normalized(self.prepared(texts))
        known = int((encoded.ids != self.unknown_id).sum())
        return TokenCounts(encoded.tokens, encoded.tokens - known)

    def encode_rows(
        self, texts: Sequence[str], max_length: int | None = None, num_threads: int = 1
    ) -> FlatIds:
        """Encode texts like `encode`, if possible with ids of the type that compiled means read."""
        return self.encode(texts, max_length, num_threads)

    def prepared(self, texts: Sequence[str]) -> list[str]:
        """Prepare texts for `encode_normalized`, by segmentation if the tokenizer has any."""
        return list(texts)

    @abstractmethod
    def encode_normalized(
        self, texts: list[str], max_length: int | None = None, num_threads: int = 1
    ) -> Encoded:
        """Encode prepared texts, and count truncated texts; arguments as for `encode`."""

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids, as far as they determine the text; an unknown id becomes `⁇`."""

    @abstractmethod
    def piece(self, piece_id: int) -> str | None:
        """Return the token of an id for display; None for ids without text, as the unknown id."""

    def kinds_of(self, ids: NDArray[Any]) -> NDArray[np.uint8]:
        """Return the kinds of ids, see `kind_of`."""
        if len(ids) > _FEW or "_kinds" in vars(self):
            return self._kinds[ids]
        distinct, places = np.unique(ids, return_inverse=True)
        return self._compute_kinds(distinct.tolist())[places.reshape(-1)]

    @cached_property
    def _kinds(self) -> NDArray[np.uint8]:
        """The kinds of all ids."""
        return self._compute_kinds(range(len(self)))

    def _compute_kinds(self, ids: Sequence[int]) -> NDArray[np.uint8]:
        return np.array([kind_of(self.piece(number)) for number in ids], np.uint8)

    @property
    def reads_ascii(self) -> bool:
        """Whether every word with an ASCII letter has a known token with a letter."""
        return False

    def shares_rows(self, other: Tokenizer) -> bool:
        """Whether ids of both tokenizers refer to the same embedding matrix."""
        return self == other

    def pack(self, rows: Sequence[Sequence[int]]) -> FlatIds:
        """Flatten lists of ids, with unknown ids treated as `encode` treats them."""
        ids = list(chain.from_iterable(rows))
        for kind in set(map(type, ids)):
            if issubclass(kind, str):
                raise SettingsError(f"a list of texts in a list: {short(ids)}; give a flat list")
            if kind is bool or not issubclass(kind, int | np.integer):
                raise SettingsError(
                    f"ids of type {kind.__name__}; give texts or lists of whole numbers"
                )
        if ids and not 0 <= min(ids) <= max(ids) < len(self):
            outside = min(ids) if min(ids) < 0 else max(ids)
            raise SettingsError(f"id {short(int(outside))} is not in 0..{len(self) - 1}")
        counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        return drop_unknown(np.array(ids, dtype=np.int64), counts, self.unknown_id)

    def __eq__(self, other: object) -> bool:
        """Whether kind, content and options are equal, so that texts get the same ids."""
        if not isinstance(other, type(self)):
            return NotImplemented
        return (self.kind, self.content, self.options) == (other.kind, other.content, other.options)

    def __hash__(self) -> int:
        """Equal tokenizers have equal hashes."""
        return hash((self.kind, self.content, json.dumps(self.options, sort_keys=True)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle kind, content and options, from which another process rebuilds the tokenizer."""
        return _rebuild, (type(self), self.content, self.options)


def _rebuild(cls: Any, content: bytes, options: dict[str, Any]) -> Any:
    return cls(content, **options)


def valid(text: str) -> str:
    """Return the text with lone surrogates, which are not valid UTF-8, replaced by "?"."""
    return text.encode("utf-8", "replace").decode("utf-8")
