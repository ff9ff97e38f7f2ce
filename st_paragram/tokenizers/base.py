"""What every tokenizer offers: text to flat ids and back, and itself as bytes, for stores and model directories."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from st_paragram.errors import SettingsError

#: Ids of N texts one after another, int64 (total,), and offsets, int64 (N + 1,): text i is
#: ids[offsets[i]:offsets[i + 1]].
FlatIds = tuple[NDArray[np.int64], NDArray[np.int64]]

#: The tokenizers by the kind that stores and model directories name; each is imported when it is asked for.
KINDS = {"sentencepiece": "st_paragram.tokenizers.sentencepiece:SentencePieceTokenizer"}


class Tokenizer(Protocol):
    """Text to ids. Unknown pieces are dropped; a text with no known piece is the single unknown id.

    Two tokenizers are equal if kind, content and options are.

    Attributes:
        kind: its name in `KINDS`.
        unknown_id: the id of what it does not know; a row of the table like any other.
    """

    kind: ClassVar[str]
    unknown_id: int

    def __len__(self) -> int:
        """Number of ids."""

    def encode(self, texts: Sequence[str], max_length: int | None = None, num_threads: int = 1) -> FlatIds:
        """Encode texts, at most `max_length` ids of each (counted before unknown ones are dropped)."""

    def pack(self, rows: Sequence[Sequence[int]]) -> FlatIds:
        """Flatten lists of ids under the same policy.

        Raises:
            SettingsError: an id outside the vocabulary.
        """

    def decode(self, ids: Sequence[int]) -> str:
        """A text that has these ids, as far as ids tell it."""

    @property
    def content(self) -> bytes:
        """The vocabulary as the bytes of a file."""

    @property
    def options(self) -> dict[str, Any]:
        """What besides the content decides about ids: JSON values, the arguments of the class by name."""


def load_tokenizer(kind: str, content: bytes, options: Mapping[str, Any]) -> Tokenizer:
    """Make the tokenizer that has this content and these options.

    Raises:
        SettingsError: no such kind, or the content or the options are refused.
    """
    if kind not in KINDS:
        raise SettingsError(f"no tokenizer of kind {kind!r}; this st_paragram knows {', '.join(KINDS)}; update it")
    module, _, name = KINDS[kind].partition(":")
    try:
        tokenizer: Tokenizer = getattr(importlib.import_module(module), name)(content, **options)
    except TypeError as error:
        raise SettingsError(f"options {dict(options)} are none of a {kind} tokenizer ({error})") from error
    return tokenizer
