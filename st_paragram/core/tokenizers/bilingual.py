"""A tokenizer for each of two languages, whose ids are rows of one table: shared where pieces are equal, or disjoint.

Source: ACL 2019 ("Simple and Effective Paraphrastic Similarity from Parallel Translations"): languages whose
vocabularies overlap more learn from each other, and vocabularies that share no row are the control.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar

import numpy as np

from st_paragram.core.tokenizers.base import Encoded, Tokenizer, load_tokenizer
from st_paragram.errors import SettingsError


class Sharing(str, Enum):
    """Which rows of the table the vocabularies of two languages share."""

    JOINT = "joint"
    STRING = "string"
    DISJOINT = "disjoint"


class BilingualTokenizer(Tokenizer):
    """Reads texts of one of its two languages; `in_language` gives the one that reads the other.

    The rows of the first language come first, in the order of its ids; those of the second that it does not share
    follow. By string, equal pieces and the unknown ids share a row; disjoint vocabularies share none.
    """

    kind: ClassVar[str] = "bilingual"

    def __init__(
        self, content: bytes, inner: Mapping[str, Any], sharing: str, languages: Sequence[str], language: str
    ) -> None:
        """Put two together: `content` is from `both`, `inner` has `kind` and `options`, and `language` is read."""
        if Sharing(sharing) is Sharing.JOINT or len({*languages}) != 2 or language not in languages:
            seen = f"sharing {sharing!r}, languages {list(languages)}, language {language!r}"
            raise SettingsError(f"{seen}; a table for two languages has sharing string or disjoint, and one is read")
        self.content, self.inner_kind = content, inner["kind"]
        self.languages, self.language = tuple(languages), language
        read = {"languages": list(languages), "language": language}
        self.options = {"inner": dict(inner), "sharing": Sharing(sharing).value, **read}
        end = 8 + int.from_bytes(content[:8], "little")
        first, second = (load_tokenizer(content=part, **inner) for part in (content[8:end], content[end:]))
        rows = np.arange(len(second)) + len(first)
        if Sharing(sharing) is Sharing.STRING:
            known = {piece: token for token in range(len(first)) if (piece := first.piece(token))}
            shared_rows = np.array([known.get(second.piece(token) or "", -1) for token in range(len(second))])
            shared_rows[second.unknown_id] = first.unknown_id
            own = shared_rows < 0
            rows = np.where(own, len(first) + np.cumsum(own) - 1, shared_rows)
        self._size = max(len(first), int(rows.max()) + 1)
        self._tokenizer, self._rows = (first, np.arange(len(first))) if language == languages[0] else (second, rows)
        self._ids = {int(row): token for token, row in enumerate(self._rows)}
        self.unknown_id = int(self._rows[self._tokenizer.unknown_id])

    @classmethod
    def of(cls, first: Tokenizer, second: Tokenizer, sharing: Sharing, languages: Sequence[str]) -> BilingualTokenizer:
        """Put two tokenizers of one kind and the same options together; the first language is read."""
        inner = {"kind": first.kind, "options": first.options}
        if inner != {"kind": second.kind, "options": second.options}:
            raise SettingsError(f"a {first.kind} and a {second.kind} tokenizer, or other options; make them alike")
        return cls(both(first.content, second.content), inner, sharing.value, languages, languages[0])

    def in_language(self, language: str) -> BilingualTokenizer:
        """The tokenizer that reads one of the two languages; its ids are rows of the same table."""
        return BilingualTokenizer(self.content, **{**self.options, "language": language})

    def __len__(self) -> int:
        """Rows of the table, of both languages."""
        return self._size

    def prepared(self, texts: Sequence[str]) -> list[str]:
        """The texts as the tokenizer of the language that is read prepares them."""
        return self._tokenizer.prepared(texts)

    def encode_normalized(self, texts: list[str], max_length: int | None = None, num_threads: int = 1) -> Encoded:
        """Encode prepared texts of the language that is read."""
        encoded = self._tokenizer.encode_normalized(texts, max_length, num_threads)
        return encoded._replace(ids=self._rows[encoded.ids])

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
    return len(first).to_bytes(8, "little") + first + second
