"""Write a pair store, part by part."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import h5py
import numpy as np
from numpy.typing import DTypeLike, NDArray

from st_paragram.core.data.pair_store.content import Content
from st_paragram.core.data.pair_store.format import (
    DIGEST,
    FORMAT,
    FORMAT_VERSION,
    LABELS,
    ROW_LANGUAGES,
    SENTENCEPIECE_MODEL,
    SIDES,
    TOKENIZER,
    VERSION_1_TOKENIZER,
)
from st_paragram.core.data.pair_store.plain_hdf5 import as_utf8
from st_paragram.core.data.pair_store.spool import SideSpool, Spool
from st_paragram.core.files import temporary_folder
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import SettingsError

_OVERHEAD = 1 << 16  # bytes of a store beside its arrays, tokenizers and settings, at most
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class PairStoreWriter:
    """Write a pair store; the file takes its name only when the `with` block ends without an error.

    The file is of version 1 if that version can hold the content, else of version 2 (see `format`).
    """

    def __init__(
        self,
        path: str | Path,
        languages: tuple[str, str],
        tokenizer: Tokenizer | tuple[Tokenizer, Tokenizer],
        max_length: int | None = None,
        settings: Mapping[str, Any] | None = None,
        seed: int = 0,
        row_languages: Sequence[tuple[str, str]] | None = None,
        labels: DTypeLike | None = None,
    ) -> None:
        """Begin a store; until it is complete, files beside it hold what is appended.

        Args:
            path: the file to make.
            languages: names of side a and side b, e.g. ("en", "es").
            tokenizer: the tokenizer of the ids, or that of each side; it is stored inside.
            max_length: where sentences were cut, in ids.
            settings: what is worth knowing of the preparation; anything JSON holds.
            seed: the seed of the shuffle.
            row_languages: the pairs of languages that rows may have, if they differ from row to row.
            labels: the type of the rows' labels, an integer or float type, if rows have labels.

        Raises:
            SettingsError: `row_languages` names a pair twice, or the labels would be no numbers.
        """
        self.path = Path(path)
        self.languages = languages
        self.max_length = max_length
        self.settings: dict[str, Any] = dict(settings or {})
        self.seed = seed
        self._language_pairs = _different(row_languages or [languages])
        first, second = tokenizer if isinstance(tokenizer, tuple) else (tokenizer, tokenizer)
        self._tokenizers = (first,) if first == second else (first, second)
        types = {ROW_LANGUAGES: self._language_type(), LABELS: None if labels is None else _label_type(labels)}
        self._unfinished = ExitStack()
        self.part = self._unfinished.enter_context(temporary_folder(self.path)) / "store"
        self._sides = [SideSpool(self.part, side, len(each)) for side, each in zip(SIDES, (first, second), strict=True)]
        self._columns = {
            name: Spool(self.part.with_name(f"{self.part.name}.{name}"), dtype)
            for name, dtype in types.items()
            if dtype is not None
        }

    def _language_type(self) -> np.dtype[Any] | None:
        """The type of the numbers of rows' pairs of languages; None if all rows are of the store's languages."""
        if self._language_pairs == [self.languages]:
            return None
        return np.min_scalar_type(len(self._language_pairs) - 1)

    def append(
        self,
        a_ids: NDArray[np.integer[Any]],
        a_offsets: NDArray[np.integer[Any]],
        b_ids: NDArray[np.integer[Any]],
        b_offsets: NDArray[np.integer[Any]],
        pairs: NDArray[np.integer[Any]] | None = None,
        labels: NDArray[Any] | None = None,
    ) -> None:
        """Append rows.

        Args:
            a_ids: integers (total of side a,), the ids of the sentences one after another.
            a_offsets: integers (n + 1,), from 0: where sentences begin and end.
            b_ids: integers (total of side b,).
            b_offsets: integers (n + 1,).
            pairs: integers (n,), the place of each row's pair of languages in `row_languages`; needed if there are
                several pairs.
            labels: numbers (n,), needed if rows have labels.

        Raises:
            ValueError: the sides, pairs or labels differ in their number of rows; pairs or labels are missing, or are
                given where there are none; an id, a pair or a label is out of its range. Nothing is appended then; a
                row is named by its place among those given, from 0.
        """
        rows = len(a_offsets) - 1
        if len(b_offsets) - 1 != rows:
            raise ValueError(f"{rows} sentences on side a, {len(b_offsets) - 1} on side b")
        columns = {ROW_LANGUAGES: self._language_numbers(pairs, rows), LABELS: self._label_values(labels, rows)}
        a, b = self._sides
        a.check(a_ids)
        b.check(b_ids)
        a.append(a_ids, a_offsets)
        b.append(b_ids, b_offsets)
        for name, spool in self._columns.items():
            spool.append(columns[name])

    def _language_numbers(self, pairs: NDArray[np.integer[Any]] | None, rows: int) -> NDArray[np.integer[Any]]:
        """The number of each row's pair of languages, checked."""
        known = len(self._language_pairs)
        if pairs is None:
            if known > 1:
                raise ValueError(f"rows may be of {known} pairs of languages; say of which each row is")
            return np.zeros(rows, np.uint8)
        if len(pairs) != rows:
            raise ValueError(f"{len(pairs)} numbers of pairs of languages for {rows} rows")
        if (wrong := (pairs < 0) | (pairs >= known)).any():
            row = int(np.argmax(wrong))
            raise ValueError(f"row {row}: pair of languages {pairs[row]}, but there are only {known}, counted from 0")
        return pairs

    def _label_values(self, labels: NDArray[Any] | None, rows: int) -> NDArray[Any]:
        """The labels in the type of the store, checked."""
        if LABELS not in self._columns:
            if labels is not None:
                raise ValueError("labels for a store without labels; give their type when it is opened for writing")
            return np.zeros(0)
        if labels is None or len(labels) != rows:
            raise ValueError(f"{0 if labels is None else len(labels)} labels for {rows} rows")
        dtype = self._columns[LABELS].dtype
        with np.errstate(invalid="ignore", over="ignore"):
            values = labels.astype(dtype)
        good = np.isfinite(values) if dtype.kind == "f" else values == labels
        if not good.all():
            row = int(np.argmin(good))
            raise ValueError(f"row {row}: the label {labels[row]} is no finite number of the type {dtype}")
        return values

    def __len__(self) -> int:
        """Rows appended so far."""
        return len(self._sides[0])

    def __enter__(self) -> PairStoreWriter:
        """Return the writer."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write the file and let it take its name, or remove everything after an error."""
        try:
            if kind is None:
                self._make_sure_of_room()
                # "earliest", so that the same content gives the same bytes whatever the release of HDF5
                with h5py.File(self.part, "w", libver="earliest") as file:
                    self._write(file)
                self.part.replace(self.path)
        finally:
            for side in self._sides:
                side.remove()
            for column in self._columns.values():
                column.remove()
            self._unfinished.close()

    def _make_sure_of_room(self) -> None:
        """Fail now if the disk is full: libhdf5 may crash when it closes a file that it could not write.

        Raises:
            OSError: there is no room for the file.
        """
        arrays = [size for side in self._sides for size in side.sizes] + [each.size for each in self._columns.values()]
        rest = sum(len(each.content) for each in self._tokenizers) + len(json.dumps(self.settings)) + _OVERHEAD
        with self.part.open("wb") as file:
            file.truncate(sum(arrays) + rest)  # whether a file may be so large; this takes no room
            _reserve(file.fileno(), max(arrays) + rest)  # an array is removed once it is in the file

    def _write(self, file: h5py.File) -> None:
        version = FORMAT_VERSION if self._columns or not _suits_version_1(self._tokenizers) else 1
        options = self._tokenizers[0].options if version == 1 else {}
        file.attrs.update(
            format=FORMAT,
            format_version=version,
            languages=list(self.languages),
            **options,
            max_length=self.max_length or 0,
            seed=self.seed,
        )
        if version == 1:
            file[SENTENCEPIECE_MODEL] = _bytes(self._tokenizers[0].content)
        for side, spool in zip(SIDES, self._sides, strict=True):
            spool.move_into(file.create_group(side))
        if version > 1:
            self._write_tokenizers(file)
        for name, column in self._columns.items():
            data = column.move_into(file, name)
            if name == ROW_LANGUAGES:
                data.attrs["pairs"] = json.dumps(self._language_pairs, ensure_ascii=False)
        settings = as_utf8(json.dumps(self.settings, ensure_ascii=False))
        file.attrs["pairs"] = len(self)
        file.attrs["settings"] = settings
        file.attrs[DIGEST] = self._digest(json.loads(settings))
        file.attrs["complete"] = True

    def _digest(self, settings: dict[str, Any]) -> str:
        content = Content(
            self.languages,
            len(self),
            self.max_length,
            self.seed,
            settings,
            self._tokenizers,
            self._language_pairs,
        )
        sides = {name: digest for side in self._sides for name, digest in side.digests().items()}
        return content.digest(sides | {name: column.digest for name, column in self._columns.items()})

    def _write_tokenizers(self, file: h5py.File) -> None:
        places = [file] if len(self._tokenizers) == 1 else [file[side] for side in SIDES]
        for place, tokenizer in zip(places, self._tokenizers, strict=True):
            place[TOKENIZER] = _bytes(tokenizer.content)
            options = json.dumps(tokenizer.options, ensure_ascii=False)
            place[TOKENIZER].attrs.update(kind=tokenizer.kind, options=options)


def _reserve(file: int, size: int) -> None:
    """Take room on disk, where the file system can do that."""
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file, 0, size)
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise


def _different(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    if len(set(pairs)) < len(pairs):
        raise SettingsError(f"rows of the languages {list(pairs)}; name each pair once")
    return list(pairs)


def _label_type(labels: DTypeLike) -> np.dtype[Any]:
    dtype = np.dtype(labels)
    if dtype.kind not in "iuf" or dtype.itemsize > 8 or not dtype.isnative:
        raise SettingsError(f"labels of the type {dtype}; give an integer or float type of at most 64 bits")
    return dtype


def _suits_version_1(tokenizers: Sequence[Tokenizer]) -> bool:
    """Whether it is one sentencepiece tokenizer, of no other options than that version has."""
    return len(tokenizers) == 1 and (tokenizers[0].kind, set(tokenizers[0].options)) == VERSION_1_TOKENIZER


def _bytes(content: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(content, dtype=np.uint8)
