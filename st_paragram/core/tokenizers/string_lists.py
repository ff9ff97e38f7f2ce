"""Tokenizers whose vocabulary is a list of strings in the order of their ids, stored as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from st_paragram.core.tokenizers.base import Encoded, Tokenizer
from st_paragram.core.tokenizers.characters import CHARACTERS
from st_paragram.errors import SettingsError, TextError, refused, short

_CHARACTERS = str.maketrans(CHARACTERS)


class StringListTokenizer(Tokenizer):
    """The id of a token is its index in a list; the unknown id follows the last.

    Uses one thread.
    """

    def __init__(self, content: bytes, options: dict[str, Any], strings: list[str]) -> None:
        """Take content and options, and the strings in the order of their ids."""
        self.content = content
        self.options = options
        self.strings = strings
        self.unknown_id: int = len(strings)
        self._ids = {string: place for place, string in enumerate(strings)}

    def __len__(self) -> int:
        """Number of strings, plus one for the unknown id."""
        return len(self.strings) + 1

    def encoded(self, tokens: Iterable[list[str]], max_length: int | None) -> Encoded:
        """Encode texts, given their tokens."""
        ids: list[int] = []
        counts: list[int] = []
        for text in tokens:
            ids.extend(map(self._ids.get, text, repeat(self.unknown_id)))
            counts.append(len(text))
        return Encoded.of(
            np.array(ids, np.int64), np.array(counts, np.int64), self.unknown_id, max_length
        )

    def shown(self, ids: Sequence[int]) -> list[str]:
        """Return the strings of ids, and for the unknown id sentencepiece's symbol."""
        return [self.piece(int(number)) or "⁇" for number in ids]

    def decode(self, ids: Sequence[int]) -> str:
        """Join the strings with spaces; an unknown id becomes `⁇`."""
        return " ".join(self.shown(ids))

    def piece(self, piece_id: int) -> str | None:
        """Return the string; None for the unknown id."""
        return None if piece_id == self.unknown_id else self.strings[piece_id]


def read_texts(texts: Iterable[str], lower_case: bool, characters: bool) -> list[str]:
    """Lower-case texts and replace `CHARACTERS`, each if wanted."""
    if lower_case:
        texts = map(str.lower, texts)
    if characters:
        texts = read_characters(texts)
    return list(texts)


def read_characters(texts: Iterable[str]) -> Iterator[str]:
    """Replace `CHARACTERS` in texts."""
    return (text.translate(_CHARACTERS) for text in texts)


def most_frequent(counts: Counter[str], size: int, what: str) -> bytes:
    """Return the most frequent strings; ties are broken alphabetically."""
    if not counts:
        raise TextError(f"no {what} to build a vocabulary from; give more text")
    strings = sorted(counts, key=lambda string: (-counts[string], string))
    return write_strings(strings[:size])


def write_strings(strings: Sequence[str]) -> bytes:
    """Serialize a list."""
    return json.dumps(list(strings), ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def read_strings(content: bytes, what: str) -> list[str]:
    """Read a list written by `write_strings`; `what` names the strings in the error."""
    place = f"{len(content):,} bytes"
    with refused(SettingsError, place, f"not a list of {what}", "rebuild the vocabulary"):
        return checked_strings(json.loads(content))


def checked_strings(strings: Any) -> list[str]:
    """Return a valid vocabulary; raise `ValueError` with the reason if it is not valid."""
    if not isinstance(strings, list) or not strings:
        raise ValueError(f"{short(strings)} is not a list of strings")
    if not all(isinstance(string, str) and string for string in strings):
        raise ValueError(f"{short(strings)} is not a list of strings")
    "".join(strings).encode("utf-8")  # raises ValueError for a lone surrogate, which JSON can hold
    copies = len(strings) - len(set(strings))
    if copies:
        raise ValueError(f"{copies} occur twice")
    return strings
