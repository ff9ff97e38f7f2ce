"""Separate tokenizers for two languages with one embedding matrix: rows of equal pieces are shared,
or none are.

Source: ACL 2019 ("Simple and Effective Paraphrastic Similarity from Parallel Translations"):
languages with a larger vocabulary overlap learn more from each other; vocabularies without shared
rows are the control.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.tokenizers.base import Encoded, Tokenizer, load_tokenizer
from st_paragram.errors import SettingsError


class Sharing(str, Enum):
    """Rows of the embedding matrix that the vocabularies of two languages share."""

    JOINT = "joint"
    STRING = "string"
    DISJOINT = "disjoint"


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
        """Combine two tokenizers: `content` is from `both`, `inner` has `kind` and `options`;
        encode `language`.
        """
        if Sharing(sharing) is Sharing.JOINT or len({*languages}) != 2 or language not in languages:
            seen = f"sharing {sharing!r}, languages {list(languages)}, language {language!r}"
            raise SettingsError(
                f"{seen}; give sharing string or disjoint, two languages, and one of them to read"
            )
        self.content, self.inner_kind = content, inner["kind"]
        self.languages, self.language = tuple(languages), language
        read = {"languages": list(languages), "language": language}
        self.options = {"inner": dict(inner), "sharing": Sharing(sharing).value, **read}
        end = 8 + int.from_bytes(content[:8], "little")
        first, second = (
            load_tokenizer(content=part, **inner) for part in (content[8:end], content[end:])
        )
        rows = np.arange(len(second)) + len(first)
        if Sharing(sharing) is Sharing.STRING:
            known = {piece: token for token in range(len(first)) if (piece := first.piece(token))}
            shared_rows = np.array(
                [known.get(second.piece(token) or "", -1) for token in range(len(second))]
            )
            shared_rows[second.unknown_id] = first.unknown_id
            own = shared_rows < 0
            rows = np.where(own, len(first) + np.cumsum(own) - 1, shared_rows)
        self._size = max(len(first), int(rows.max()) + 1)
        # For each language, its tokenizer and the row of each of its ids
        self._sides: dict[str, tuple[Tokenizer, NDArray[np.int64]]] = {
            languages[0]: (first, np.arange(len(first))),
            languages[1]: (second, rows),
        }
        self._choose(language)

    def _choose(self, language: str) -> None:
        self.language = language
        self.options = {**self.options, "language": language}
        self._tokenizer, self._rows = self._sides[language]
        self.unknown_id = int(self._rows[self._tokenizer.unknown_id])

    @classmethod
    def of(
        cls, first: Tokenizer, second: Tokenizer, sharing: Sharing, languages: Sequence[str]
    ) -> BilingualTokenizer:
        """Combine two tokenizers of one kind and with the same options, to encode the first
        language.
        """
        inner = {"kind": first.kind, "options": first.options}
        if inner != {"kind": second.kind, "options": second.options}:
            raise SettingsError(
                f"a {first.kind} and a {second.kind} tokenizer; give the same kind and options"
            )
        return cls(
            both(first.content, second.content), inner, sharing.value, languages, languages[0]
        )

    def in_language(self, language: str) -> BilingualTokenizer:
        """Return the tokenizer for one of the two languages; its ids refer to the same embedding
        matrix.
        """
        if language not in self._sides:
            raise SettingsError(
                f"language is {language!r}; the model has {' and '.join(self.languages)}"
            )
        if language == self.language:
            return self
        # shares the tokenizers of both languages
        tokenizer = BilingualTokenizer.__new__(BilingualTokenizer)
        tokenizer.__dict__.update(self.__dict__)
        tokenizer.__dict__.pop("_ids", None)
        tokenizer._choose(language)
        return tokenizer

    @property
    def unknown_ids(self) -> tuple[int, ...]:
        """The rows of the unknown ids of both languages."""
        return tuple(sorted({int(ids[side.unknown_id]) for side, ids in self._sides.values()}))

    @cached_property
    def _ids(self) -> dict[int, int]:
        """Row of the embedding matrix -> id of the chosen language."""
        return {int(row): token for token, row in enumerate(self._rows)}

    def __len__(self) -> int:
        """Number of rows of the embedding matrix, for both languages."""
        return self._size

    def prepared(self, texts: Sequence[str]) -> list[str]:
        """Prepare texts with the tokenizer of the chosen language."""
        return self._tokenizer.prepared(texts)

    def encode_normalized(
        self, texts: list[str], max_length: int | None = None, num_threads: int = 1
    ) -> Encoded:
        """Encode prepared texts in the chosen language."""
        encoded = self._tokenizer.encode_normalized(texts, max_length, num_threads)
        return encoded._replace(ids=self._rows[encoded.ids])

    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids of the chosen language; ids of the other language count as unknown."""
        unknown = self._tokenizer.unknown_id
        return self._tokenizer.decode([self._ids.get(int(each), unknown) for each in ids])

    def piece(self, piece_id: int) -> str | None:
        """Return the piece of an id in the chosen language; None for ids of the other language
        only.
        """
        token = self._ids.get(int(piece_id))
        return None if token is None else self._tokenizer.piece(token)

    def shares_rows(self, other: Tokenizer) -> bool:
        """Whether the other tokenizer equals this one except for the chosen language."""
        return isinstance(other, BilingualTokenizer) and self == other.in_language(self.language)


def both(first: bytes, second: bytes) -> bytes:
    """Join two contents: the length of the first (uint64, little-endian), the first, the second."""
    return len(first).to_bytes(8, "little") + first + second
