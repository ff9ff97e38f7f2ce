"""The file format of pair stores, version 1 and version 2.

A store is one HDF5 file. Its arrays are one-dimensional and contiguous, so that they can be mapped into memory; N is
the number of rows, which are pairs of sentences. Both versions have, for each side `a` and `b`:

    <side>/ids          unsigned, the smallest type that holds the ids of the side's tokenizer
    <side>/offsets      uint64 (N + 1,): sentence i of the side is ids[offsets[i]:offsets[i + 1]]

and the attributes of the root

    format              "st_paragram pair store"
    format_version      1 or 2
    languages           two names, e.g. "en" and "es", or "en" and "fr-es-de" for a store of several languages
    pairs               N
    max_length          where sentences were cut, in ids; 0 if they were not
    seed                of the shuffle
    settings            JSON: what the preparation noted
    complete            True, written last
    content_sha256      the digest of the content, see below; files that were written before there was one have none

Version 1 holds rows of one pair of languages, encoded by one sentencepiece tokenizer:

    sentencepiece_model             uint8: the bytes of the `.model` file
    lower_case, segmentation        attributes of the root: the options of the tokenizer

Version 2 holds what version 1 cannot; a store is written as version 1 wherever that suffices:

    tokenizer                       uint8: the content of the tokenizer that both sides share; or, if they do not,
    a/tokenizer, b/tokenizer        the content of each side's own tokenizer
      kind, options                 attributes of these: the tokenizer's kind, and its options as JSON
    row_languages                   unsigned (N,), where rows are of several pairs of languages: the number of each
                                    row's pair, from 0
      pairs                         its attribute, JSON: the pairs of languages, a list of lists of two names
    labels                          (N,), where rows have labels: finite numbers of any integer or float type

All numbers are little-endian; ids have at most 32 bits, the others at most 64. Nothing else of HDF5 is used: a file
with links, filters, chunks, virtual data sets or data in other files is refused (see `hdf5`).

The digest of the content is the SHA-256, in hexadecimal digits, of one JSON object in UTF-8: keys sorted, no white
space, characters beyond ASCII as they are. It is the same in both versions:

    arrays              for each array above but the tokenizers, by its name: [type, length, digest]; the type as numpy
                        writes it ("<u2"), and the SHA-256 of the array's bytes
    tokenizers          of the shared tokenizer or of each side's: [kind, options, SHA-256 of the content]
    language_pairs      the pairs of languages that rows may have; [languages] where rows have none
    languages, pairs, max_length, seed, settings        the attributes
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

FORMAT = "st_paragram pair store"
FORMAT_VERSION = 2  # the newest; `VERSIONS` can be read
VERSIONS = (1, 2)
SIDES = ("a", "b")

#: Items of an array that are read or written together.
CHUNK = 1 << 22

TOKENIZER, ROW_LANGUAGES, LABELS = "tokenizer", "row_languages", "labels"
SENTENCEPIECE_MODEL = "sentencepiece_model"
DIGEST = "content_sha256"

#: Kind and names of the options of the tokenizers that version 1 can hold.
VERSION_1_TOKENIZER = ("sentencepiece", {"lower_case", "segmentation"})

#: What to do about a store that cannot be used.
REMAKE = "prepare it again with `st-paragram prepare`"


class _Tokenizer(Protocol):
    """What is common to a tokenizer in use and one as a store keeps it."""

    @property
    def kind(self) -> str: ...
    @property
    def content(self) -> bytes: ...
    @property
    def options(self) -> dict[str, Any]: ...


class ArrayDigest:
    """The digest of an array, which is made while it is written or read."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype, self._length, self._hash = dtype, 0, hashlib.sha256()

    def add(self, values: NDArray[Any]) -> None:
        """Go on with further numbers, contiguous and of the type of the array."""
        self._hash.update(values.data)
        self._length += len(values)

    def described(self) -> list[Any]:
        """Type, number of numbers, and SHA-256 of their bytes."""
        return [self._dtype.str, self._length, self._hash.hexdigest()]


@dataclass(frozen=True)
class Content:
    """What a store holds, but for its arrays.

    Attributes:
        languages: names of side a and side b.
        pairs: rows.
        max_length: where sentences were cut, in ids, if they were.
        seed: of the shuffle.
        settings: what the preparation noted, as JSON gives it back.
        tokenizers: the one that both sides share, or that of each side.
        language_pairs: the pairs of languages that rows may have.
    """

    languages: tuple[str, str]
    pairs: int
    max_length: int | None
    seed: int
    settings: dict[str, Any]
    tokenizers: Sequence[_Tokenizer]
    language_pairs: Sequence[tuple[str, str]]

    def digest_with(self, arrays: Mapping[str, ArrayDigest]) -> str:
        """The SHA-256 of the whole, in hexadecimal digits; the arrays by their names in the file."""
        whole = {
            "arrays": {name: array.described() for name, array in arrays.items()},
            "language_pairs": list(self.language_pairs),
            "languages": self.languages,
            "max_length": self.max_length or 0,
            "pairs": self.pairs,
            "seed": self.seed,
            "settings": self.settings,
            "tokenizers": [
                [each.kind, each.options, hashlib.sha256(each.content).hexdigest()] for each in self.tokenizers
            ],
        }
        text = json.dumps(whole, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8")).hexdigest()
