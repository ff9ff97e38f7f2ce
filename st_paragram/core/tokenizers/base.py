"""The interface of tokenizers: text to flat ids and back, and serialization for stores and model
directories.
"""

from __future__ import annotations

import json
import pkgutil
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.tokenizers.flat_ids import drop_unknown, truncate
from st_paragram.errors import SettingsError, refused, short

#: Ids of N texts in one array, and the offsets of texts, as returned by `Tokenizer.encode`.
FlatIds = tuple[NDArray[np.int64], NDArray[np.int64]]

#: Kind, as in stores and model directories, -> tokenizer class; imported when needed.
KINDS = {
    "sentencepiece": "st_paragram.core.tokenizers.sentencepiece:SentencePieceTokenizer",
    "word": "st_paragram.core.tokenizers.words:WordTokenizer",
    "trigram": "st_paragram.core.tokenizers.character_trigrams:CharacterTrigramTokenizer",
    "bilingual": "st_paragram.core.tokenizers.bilingual:BilingualTokenizer",
}


#: Kinds of tokens: without text (unknown, a space), only digits and signs, with a letter.
NO_TEXT, SIGNS, LETTERS = 0, 1, 2
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
    offsets: NDArray[np.int64]
    cut: int

    @classmethod
    def of(
        cls, ids: NDArray[Any], counts: NDArray[np.int64], unknown_id: int, max_length: int | None
    ) -> Encoded:
        """Truncate texts to `max_length` ids, if given, then drop unknown ids; `counts` (N,) are
        ids per text.
        """
        most = len(ids) if max_length is None else max_length
        return cls(
            *drop_unknown(*truncate(ids, counts, most), unknown_id), int((counts > most).sum())
        )


class Tokenizer(Protocol):
    """Convert text to ids. Unknown pieces are dropped; a text without known pieces is one unknown
    id (EMNLP 2022).

    `Class(content, **options)` creates a tokenizer. Equality, hash and pickling depend on kind,
    content and options.
    """

    kind: ClassVar[str]  # the name of the class in `KINDS`
    unknown_id: int  # has a row in the embedding matrix like any other id
    content: bytes  # the vocabulary, as the bytes of a file
    options: dict[str, Any]  # the other arguments of the class, as JSON values

    @property
    def unknown_ids(self) -> tuple[int, ...]:
        """The rows of the embedding matrix for texts without a known token: one, or one per
        language.
        """
        return (self.unknown_id,)

    @abstractmethod
    def __len__(self) -> int:
        """Number of ids."""

    def encode(
        self, texts: Sequence[str], max_length: int | None = None, num_threads: int = 1
    ) -> FlatIds:
        """Encode N texts as ids, int64 (total,), and offsets, int64 (N + 1,): text i is
        ids[offsets[i]:offsets[i + 1]].

        At most `max_length` ids of a text are kept, counted before unknown ones are dropped.
        """
        if isinstance(texts, str):
            raise SettingsError(f"{short(texts)} is one text; give a list of texts")
        return self.encode_normalized(self.prepared(texts), max_length, num_threads)[:2]

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
        """Return the piece of an id for display; None for ids without text, such as the unknown id."""

    def kinds_of(self, ids: NDArray[Any]) -> NDArray[np.uint8]:
        """Return the kinds of ids, see `kind_of`."""
        if len(ids) > _FEW or "_kinds" in vars(self):
            return self._kinds[ids]
        distinct, places = np.unique(ids, return_inverse=True)
        kinds = np.array([kind_of(self.piece(number)) for number in distinct.tolist()], np.uint8)
        return kinds[places.reshape(-1)]

    @cached_property
    def _kinds(self) -> NDArray[np.uint8]:
        """The kinds of all ids."""
        return np.array([kind_of(self.piece(number)) for number in range(len(self))], np.uint8)

    @property
    def reads_ascii(self) -> bool:
        """Whether every word with an ASCII letter has a known token with a letter."""
        return False

    def shares_rows(self, other: Tokenizer) -> bool:
        """Whether ids of both tokenizers refer to the same embedding matrix, as they do for equal
        tokenizers.
        """
        return self == other

    def pack(self, rows: Sequence[Sequence[int]]) -> FlatIds:
        """Flatten lists of ids, with unknown ids treated as `encode` treats them."""
        ids = list(chain.from_iterable(rows))
        for kind in set(map(type, ids)):
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
        return load_tokenizer, (self.kind, self.content, self.options)


def load_tokenizer(kind: str, content: bytes, options: Mapping[str, Any]) -> Tokenizer:
    """Create a tokenizer from its content and options; raise `SettingsError` if they are refused."""
    if kind not in KINDS:
        raise SettingsError(
            f"no tokenizer of kind {kind!r}; this version knows {', '.join(KINDS)}; update"
            " st_paragram"
        )
    with refused(
        SettingsError,
        f"{kind} tokenizer",
        f"cannot have the options {short(options)}",
        "rebuild it",
    ):
        if wrong := [
            name
            for name in ("lower_case", "trigrams", "characters")
            if not isinstance(options.get(name, True), bool)
        ]:
            raise SettingsError(f"{wrong[0]} is {short(options[wrong[0]])}, not true or false")
        tokenizer: Tokenizer = pkgutil.resolve_name(KINDS[kind])(content, **options)
    return tokenizer


def valid(text: str) -> str:
    """Return the text with lone surrogates, which are not valid UTF-8, replaced by "?"."""
    return text.encode("utf-8", "replace").decode("utf-8")
