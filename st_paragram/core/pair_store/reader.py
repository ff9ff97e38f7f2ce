"""Read a pair store."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.known_files import KnownDigest
from st_paragram.core.native import kernels
from st_paragram.core.pair_store.arrays import MappedFile, check_languages, check_rows, digest_of
from st_paragram.core.pair_store.format import LABELS, REMAKE, ROW_LANGUAGES, SIDES
from st_paragram.core.pair_store.header import load_tokenizers, read_header
from st_paragram.core.tokenizers import flat_ids
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import SettingsError, StoreError

Rows = NDArray[np.integer[Any]]


class PairStore:
    """A pair store. Its arrays are memory-mapped, so memory does not grow with the number of rows.

    Attributes:
        path: the file.
        pairs: rows, which are pairs of sentences; those within the limit.
        languages: names of side a and side b; several languages of a side have dashes between: ("en", "fr-es-de").
        language_pairs: the pairs of languages that rows may have.
        max_length: where sentences were cut, in ids, if they were.
        seed: of the shuffle.
        settings: what the preparation noted.

    Example:
        >>> from st_paragram import PairStore
        >>> store = PairStore("data/en-es.h5")
        >>> store.languages
        ('en', 'es')
        >>> import numpy as np
        >>> ids, offsets = store.take("a", np.array([0, 1]))  # flat ids of two sentences, and where each begins
        >>> len(offsets)
        3
    """

    def __init__(self, path: str | Path, check_ids: bool = True, limit: int | None = None) -> None:
        """Open and check a store.

        Args:
            path: an HDF5 file of this format.
            check_ids: look through all arrays once; without, rows are looked at when they are taken.
            limit: show at most the first so many rows: a random sample, since preparation shuffles.

        Raises:
            SettingsError: the limit is below 1.
            StoreError: the file is missing, no pair store, of another version, incomplete, empty or damaged.
            MissingExtraError: its tokenizer needs a package that is not installed.
        """
        if limit is not None and limit < 1:
            raise SettingsError(f"the limit is {limit} pairs; give at least 1")
        self.path = Path(path)
        self._header = header = read_header(self.path)
        self.pairs = header.pairs if limit is None else min(header.pairs, limit)
        self.format_version = header.format_version
        self.languages = header.languages
        self.language_pairs = header.language_pairs
        self.max_length = header.max_length
        self.seed = header.seed
        self.settings = header.settings
        if check_ids:
            self.check_rows()

    def __len__(self) -> int:
        """Number of rows."""
        return self.pairs

    def __getstate__(self) -> dict[str, Any]:
        """Leave maps and tokenizers behind: every process opens its own."""
        return {name: value for name, value in self.__dict__.items() if name not in ("tokenizers", "_maps")}

    def check_rows(self) -> None:
        """Look through all arrays once.

        Raises:
            StoreError: a number is out of its range, or a tokenizer is damaged.
            MissingExtraError: a tokenizer needs a package that is not installed.
        """
        check_rows(self.path, self._header, self._maps, self.tokenizers)

    @property
    def stated_digest(self) -> str | None:
        """What the file says that the digest of its content is; None if it was written before there was one."""
        return self._header.stated_digest

    def compute_digest(self) -> str:
        """Read all of the file, and make the digest of what it holds; `format` says of what it is made.

        Raises:
            StoreError: it is not what the file says.
        """
        found, stated = digest_of(self.path, self._header, self._maps), self.stated_digest
        if stated not in (None, found):
            seen = f"damaged or edited: the SHA-256 of its content is {found}, and was {stated} when it was written"
            raise StoreError(f"{self.path}: {seen}; {REMAKE}")
        return found

    @cached_property
    def digest(self) -> str:
        """The digest of the content. A file is read through for it once, and again when its size or time changed.

        Raises:
            StoreError: it is not what the file says.
        """
        known = KnownDigest("store-digests", [self.path])
        if (digest := known.read()) is None or self.stated_digest not in (None, digest):
            digest = self.compute_digest()
            known.write(digest)
        return digest

    @property
    def shared_tokenizer(self) -> bool:
        """Whether one tokenizer made the ids of both sides."""
        return len(self._header.tokenizers) == 1

    @cached_property
    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """The tokenizers of side a and side b, one and the same object if the sides share it.

        Raises:
            StoreError: a tokenizer is damaged.
            MissingExtraError: a tokenizer needs a package that is not installed.
        """
        return load_tokenizers(self.path, self._header)

    def tokenizer(self, side: str = "a") -> Tokenizer:
        """The tokenizer that made the ids of a side; errors are those of `tokenizers`."""
        return self.tokenizers[SIDES.index(side)]

    def take(
        self, side: str, rows: Rows, dtype: type[np.integer[Any]] = np.int64
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Read sentences of one side.

        Args:
            side: "a" or "b".
            rows: integers (n,), in any order.
            dtype: of the ids that are returned, int64 or int32.

        Returns:
            ids (total,), and offsets, int64 (n + 1,).

        Raises:
            StoreError: the file is damaged there, or has changed since it was opened.
        """
        ids, edges = self._maps[f"{side}/ids"], self._maps[f"{side}/offsets"]
        begin, end = edges[rows].astype(np.int64), edges[rows + 1].astype(np.int64)
        if len(begin) and not (begin.min() >= 0 and (begin < end).all() and end.max() <= len(ids)):
            raise StoreError(f"{self.path}: side {side}: offsets do not increase, or end beyond the ids; {REMAKE}")
        taken, offsets = _gathered(ids, begin, end - begin, dtype)
        most = len(self.tokenizer(side))
        if len(taken) and not 0 <= taken.min() <= taken.max() < most:
            wrong = taken.max() if taken.min() >= 0 else taken.min()
            seen = f"id {wrong} is outside the vocabulary of {most}"
            raise StoreError(f"{self.path}: side {side}: {seen}; {REMAKE}")
        return taken, offsets

    def lengths(self, side: str, begin: int, end: int) -> NDArray[np.int64]:
        """Numbers of ids of one side, of rows one after another, int64 (end - begin,).

        Raises:
            StoreError: the file is damaged there, or has changed since it was opened.
        """
        edges = np.asarray(self._maps[f"{side}/offsets"][begin : end + 1]).astype(np.int64)
        lengths = np.diff(edges)
        if len(lengths) and lengths.min() < 1:
            raise StoreError(f"{self.path}: side {side}: offsets do not increase; {REMAKE}")
        return lengths

    def texts(self, side: str, rows: Rows) -> Iterator[str]:
        """Decode one side of rows, integers (n,): lower-cased and cut as stored, unknown pieces missing."""
        tokenizer = self.tokenizer(side)
        ids, offsets = self.take(side, np.asarray(rows))
        for start, end in itertools.pairwise(offsets):
            yield tokenizer.decode(ids[start:end].tolist())

    def row_languages(self, rows: Rows) -> list[tuple[str, str]]:
        """The languages of both sides of rows, integers (n,); `languages`, unless they differ from row to row.

        Raises:
            StoreError: the file is damaged there, or has changed since it was opened.
        """
        if ROW_LANGUAGES not in self._header.extents:
            return [self.languages] * len(rows)
        numbers = self._maps[ROW_LANGUAGES][rows]
        check_languages(f"{self.path}, of the rows asked for", numbers, len(self.language_pairs))
        return [self.language_pairs[number] for number in numbers]

    def language_numbers(self) -> NDArray[np.integer[Any]]:
        """For each row the place of its languages in `language_pairs`, integers (pairs,).

        Raises:
            StoreError: the file is damaged there, or has changed since it was opened.
        """
        if ROW_LANGUAGES not in self._header.extents:
            return np.zeros(self.pairs, np.uint8)
        numbers: NDArray[np.integer[Any]] = self._maps[ROW_LANGUAGES][: self.pairs]
        check_languages(str(self.path), numbers, len(self.language_pairs))
        return numbers

    def labels(self, rows: Rows) -> NDArray[Any] | None:
        """The labels of rows, integers (n,), as numbers (n,) of the type they are stored in; None if there are none."""
        return np.array(self._maps[LABELS][rows]) if LABELS in self._header.extents else None

    @cached_property
    def _maps(self) -> MappedFile:
        return MappedFile(self.path, self._header.extents, self._header.size)


def _gathered(
    ids: NDArray[Any], begin: NDArray[np.int64], counts: NDArray[np.int64], dtype: type[np.integer[Any]]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Sentences out of the ids of a side, and their offsets."""
    if dtype is np.int32 and (native := kernels()) is not None:  # other threads run while the disk is waited for
        offsets = flat_ids.starts(counts)
        result = np.empty(offsets[-1], dtype)
        native.gather(ids, begin, offsets, result)
        return result, offsets
    taken, offsets = flat_ids.take(ids, begin, counts)
    return taken.astype(dtype), offsets
