"""What every tokenizer offers: text to flat ids and back, and itself as bytes, for stores and model directories."""

from __future__ import annotations

import importlib
import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.tokenizers.flat_ids import drop_unknown, truncate
from st_paragram.errors import SettingsError, one_line, short

#: Ids of N texts one after another, int64 (total,), and offsets, int64 (N + 1,): text i is
#: ids[offsets[i]:offsets[i + 1]].
FlatIds = tuple[NDArray[np.int64], NDArray[np.int64]]

#: The tokenizers by the kind that stores and model directories name; each is imported when it is asked for.
KINDS = {
    "sentencepiece": "st_paragram.core.tokenizers.sentencepiece:SentencePieceTokenizer",
    "word": "st_paragram.core.tokenizers.words:WordTokenizer",
    "trigram": "st_paragram.core.tokenizers.character_trigrams:CharacterTrigramTokenizer",
    "bilingual": "st_paragram.core.tokenizers.bilingual:BilingualTokenizer",
    "sentencepiece-subset": "st_paragram.core.tokenizers.sentencepiece_subset:SentencePieceSubsetTokenizer",
    "original": "st_paragram.core.tokenizers.original:OriginalTokenizer",
}


@dataclass(frozen=True)
class Encoded:
    """Texts as flat ids, the unknown id dropped.

    Attributes:
        ids: int64 (total,), or int32 where it was asked for.
        offsets: int64 (N + 1,): text i is ids[offsets[i]:offsets[i + 1]].
        cut: texts that had more ids than were to be kept.
    """

    ids: NDArray[Any]
    offsets: NDArray[np.int64]
    cut: int

    @classmethod
    def of(cls, ids: NDArray[Any], counts: NDArray[np.int64], unknown_id: int, max_length: int | None) -> Encoded:
        """Cut texts, then drop the unknown id.

        Args:
            ids: of any integer type, (total,), the texts one after another.
            counts: int64 (N,), ids of each text.
            unknown_id: the id to drop; a text left empty becomes this single id.
            max_length: keep at most this many ids of a text (counted before unknown ones are dropped); None: all.
        """
        cut = 0
        if max_length is not None:
            cut = int((counts > max_length).sum())
            ids, counts = truncate(ids, counts, max_length)
        return cls(*drop_unknown(ids, counts, unknown_id), cut)


class Tokenizer(Protocol):
    """Text to ids. Unknown pieces are dropped; a text with no known piece is the single unknown id.

    A class of tokenizers inherits from this one, and `Class(content, **options)` makes one: equality, hashes and
    pickling follow from kind, content and options.

    Attributes:
        kind: the name of the class in `KINDS`.
        unknown_id: the id of what the tokenizer does not know; a row of the embedding table like any other.
    """

    kind: ClassVar[str]
    unknown_id: int

    @abstractmethod
    def __len__(self) -> int:
        """Number of ids."""

    @abstractmethod
    def encode(self, texts: Sequence[str], max_length: int | None = None, num_threads: int = 1) -> FlatIds:
        """Encode texts as flat ids.

        Args:
            texts: N strings.
            max_length: keep at most this many ids of a text, counted before unknown ones are dropped.
            num_threads: threads to use.
        """

    def encode_normalized(self, texts: list[str], max_length: int | None = None, num_threads: int = 1) -> Encoded:
        """Encode texts that were lower-cased and segmented already, and count those that lose ids by being cut.

        The arguments are those of `encode`. Tokenizers that know it after one pass override this.
        """
        ids, offsets = self.encode(texts, max_length, num_threads)
        whole = offsets if max_length is None else self.encode(texts, None, num_threads)[1]
        return Encoded(ids, offsets, int((np.diff(offsets) < np.diff(whole)).sum()))

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """A text that has these ids, as far as ids determine it."""

    @abstractmethod
    def piece(self, piece_id: int) -> str | None:
        """What an id stands for, as it may be shown; None if it stands for no text, as the unknown id does."""

    @property
    @abstractmethod
    def content(self) -> bytes:
        """The vocabulary, as the bytes of a file."""

    @property
    @abstractmethod
    def options(self) -> dict[str, Any]:
        """What decides about ids besides the content: JSON values, named as the arguments of the class are."""

    def shares_rows(self, other: Tokenizer) -> bool:
        """Whether ids of both are rows of one table; those of equal tokenizers are."""
        return self == other

    def pack(self, rows: Sequence[Sequence[int]]) -> FlatIds:
        """Flatten lists of ids, with unknown ids treated as `encode` treats them.

        Raises:
            SettingsError: something else than a whole number, or an id outside the vocabulary.
        """
        ids = list(chain.from_iterable(rows))
        for kind in set(map(type, ids)):
            if kind is not int and not issubclass(kind, np.integer):
                raise SettingsError(f"ids of type {kind.__name__}; give texts, or lists of whole numbers")
        if ids and not 0 <= min(ids) <= max(ids) < len(self):
            outside = max(ids) if max(ids) >= len(self) else min(ids)
            raise SettingsError(f"id {short(int(outside))} is not in 0..{len(self) - 1}")
        counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        return drop_unknown(np.array(ids, dtype=np.int64), counts, self.unknown_id)

    def __eq__(self, other: object) -> bool:
        """Whether texts get the same ids: kind, content and options are equal."""
        if not isinstance(other, type(self)):
            return NotImplemented
        return (self.kind, self.content, self.options) == (other.kind, other.content, other.options)

    def __hash__(self) -> int:
        """Equal tokenizers have equal hashes."""
        return hash((self.kind, self.content, json.dumps(self.options, sort_keys=True)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle kind, content and options: another process rebuilds the tokenizer from them."""
        return load_tokenizer, (self.kind, self.content, self.options)


def load_tokenizer(kind: str, content: bytes, options: Mapping[str, Any]) -> Tokenizer:
    """Make the tokenizer that has this content and these options.

    Raises:
        SettingsError: there is no such kind, or the content or the options are refused.
        MissingExtraError: the options need a package that is not installed.
    """
    if kind not in KINDS:
        raise SettingsError(
            f"no tokenizer of kind {kind!r}; this version of st_paragram knows {', '.join(KINDS)}; update it"
        )
    module, _, name = KINDS[kind].partition(":")
    try:
        tokenizer: Tokenizer = getattr(importlib.import_module(module), name)(content, **options)
    except (TypeError, ValueError) as error:
        seen = f"a {kind} tokenizer cannot have the options {short(options)}"
        raise SettingsError(f"{seen}: {one_line(error)}") from error
    return tokenizer
