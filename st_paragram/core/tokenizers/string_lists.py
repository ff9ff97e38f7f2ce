"""Tokenizers whose vocabulary is a list of strings in the order of their ids, as bytes: JSON in UTF-8."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np

from st_paragram.core.tokenizers.base import Encoded, Tokenizer
from st_paragram.errors import SettingsError, TextError, refused, short


class StringListTokenizer(Tokenizer):
    """Tokens to their places in a list, on one thread; the id behind the last is the unknown one."""

    def __init__(self, content: bytes, options: dict[str, Any], strings: list[str]) -> None:
        """Take content and options, and the strings in the order of their ids."""
        self.content, self.options, self.strings = content, options, strings
        self.unknown_id = len(strings)
        self._ids = {string: place for place, string in enumerate(strings)}

    def __len__(self) -> int:
        """Number of strings, and one for the unknown id."""
        return len(self.strings) + 1

    def encoded(self, tokens: Iterable[list[str]], max_length: int | None) -> Encoded:
        """Texts whose tokens these are."""
        rows = [list(map(self._ids.get, text, repeat(self.unknown_id))) for text in tokens]
        counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        ids = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(counts.sum()))
        return Encoded.of(ids, counts, self.unknown_id, max_length)

    def shown(self, ids: Sequence[int]) -> list[str]:
        """The strings of ids, for the unknown one what sentencepiece shows."""
        return [self.piece(int(each)) or "⁇" for each in ids]

    def decode(self, ids: Sequence[int]) -> str:
        """The strings with spaces between them; an unknown id shows as `⁇`."""
        return " ".join(self.shown(ids))

    def piece(self, piece_id: int) -> str | None:
        """The string; None for the unknown id."""
        return None if piece_id == self.unknown_id else self.strings[piece_id]


def most_frequent(counts: Counter[str], size: int, what: str) -> bytes:
    """The list of the most frequent strings; of equally frequent ones those that sort first."""
    if not counts:
        raise TextError(f"no {what} to build a vocabulary from; give more text")
    return write_strings(sorted(counts, key=lambda string: (-counts[string], string))[:size])


def write_strings(strings: Sequence[str]) -> bytes:
    """The bytes of a list."""
    return json.dumps(list(strings), ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def read_strings(content: bytes, what: str) -> list[str]:
    """The list that `write_strings` wrote; `what` the strings are, as "words", is for the message."""
    with refused(SettingsError, f"{len(content):,} bytes", f"not a list of {what}", "make the vocabulary again"):
        return checked_strings(json.loads(content))


def checked_strings(strings: Any) -> list[str]:  # noqa: ANN401 - what JSON held
    """A vocabulary, or a `ValueError` that says why it is none."""
    if not isinstance(strings, list) or not strings or not all(each and isinstance(each, str) for each in strings):
        raise ValueError(f"{short(strings)} is not a list of strings")
    "".join(strings).encode("utf-8")  # a lone surrogate, which JSON can hold, raises a ValueError
    if len(set(strings)) < len(strings):
        raise ValueError(f"{len(strings) - len(set(strings))} are there twice")
    return strings
