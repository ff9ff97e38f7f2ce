"""Write a pair store, part by part.

Its arrays grow in raw files until their lengths are known and they can go into the store.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import h5py
import numpy as np
from numpy.typing import DTypeLike, NDArray

from st_paragram.core.files import temporary_folder
from st_paragram.core.pair_store.format import (
    CHUNK,
    DIGEST,
    FORMAT,
    FORMAT_VERSION,
    LABELS,
    ROW_LANGUAGES,
    SENTENCEPIECE_MODEL,
    SIDES,
    TOKENIZER,
    VERSION_1_TOKENIZER,
    ArrayDigest,
    Content,
)
from st_paragram.core.pair_store.hdf5 import as_utf8
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import SettingsError

_OVERHEAD = 1 << 16  # maximum bytes of a store besides its arrays, tokenizers and settings
_OF_SIDES = ("a/ids", "a/offsets", "b/ids", "b/offsets")
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class _Spool:
    """A raw file of numbers of one type, and their digest."""

    def __init__(self, file: BinaryIO, dtype: np.dtype[Any]) -> None:
        self.dtype, self.length, self.digest = dtype, 0, ArrayDigest(dtype)
        self._file = file

    def append(self, values: NDArray[Any]) -> None:
        """Append numbers, converted to the type of the array."""
        converted = values.astype(self.dtype)
        self._file.write(converted.tobytes())
        self.digest.add(converted)
        self.length += len(values)

    @property
    def size(self) -> int:
        """Bytes of the numbers."""
        return self.length * self.dtype.itemsize

    def move_into(self, file: h5py.File, name: str) -> h5py.Dataset:
        """Make a contiguous data set of the numbers, and remove the raw file."""
        self._file.close()
        data = file.create_dataset(name, shape=(self.length,), dtype=self.dtype)
        path = Path(self._file.name)
        with path.open("rb") as raw:
            for start in range(0, self.length, CHUNK):
                piece = np.fromfile(raw, dtype=self.dtype, count=CHUNK)
                data[start : start + len(piece)] = piece
        path.unlink()
        return data


class PairStoreWriter:
    """Write a pair store; the file takes its name only when the `with` block ends without an error.

    The file is of version 1 if that version can hold the content, else of version 2 (see `format`).

    Example:
        >>> from st_paragram import PairStore, PairStoreWriter
        >>> tokenizer = PairStore("data/en-es.h5").tokenizer()
        >>> with PairStoreWriter("new.h5", ("en", "es"), tokenizer) as writer:
        ...     writer.append(*tokenizer.encode(["the train"]), *tokenizer.encode(["el tren"]))
        >>> len(PairStore("new.h5"))
        1
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
        """Begin a store; until it is complete, files next to it hold what is appended.

        Args:
            path: output file.
            languages: names of side a and side b, e.g. ("en", "es").
            tokenizer: the tokenizer of the ids, or that of each side; it is stored inside.
            max_length: where sentences were cut, in ids.
            settings: facts about the preparation; anything JSON holds.
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
        types = {
            "a/ids": _id_type(first),
            "a/offsets": np.dtype(np.uint64),
            "b/ids": _id_type(second),
            "b/offsets": np.dtype(np.uint64),
            ROW_LANGUAGES: self._language_type(),
            LABELS: None if labels is None else _label_type(labels),
        }
        self._unfinished = ExitStack()
        self.part = self._unfinished.enter_context(temporary_folder(self.path)) / "store"
        self._arrays = {name: self._spool(name, dtype) for name, dtype in types.items() if dtype is not None}
        for side in SIDES:
            self._arrays[f"{side}/offsets"].append(np.zeros(1, np.uint64))

    def _spool(self, name: str, dtype: np.dtype[Any]) -> _Spool:
        file = self.part.with_name(name.replace("/", ".")).open("wb")
        return _Spool(self._unfinished.enter_context(file), dtype)

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
        new = {ROW_LANGUAGES: self._language_numbers(pairs, rows), LABELS: self._label_values(labels, rows)}
        for side, ids, offsets in zip(SIDES, (a_ids, b_ids), (a_offsets, b_offsets), strict=True):
            spool = self._arrays[f"{side}/ids"]
            _check_ids(side, ids, spool.dtype)
            new |= {f"{side}/ids": ids, f"{side}/offsets": offsets[1:] + spool.length}
        for name, spool in self._arrays.items():
            spool.append(new[name])

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
            raise ValueError(f"row {row}: unknown language pair {pairs[row]}; there are {known}, counted from 0")
        return pairs

    def _label_values(self, labels: NDArray[Any] | None, rows: int) -> NDArray[Any]:
        """The labels in the type of the store, checked."""
        if LABELS not in self._arrays:
            if labels is not None:
                raise ValueError("labels for a store without labels; give their type when it is opened for writing")
            return np.zeros(0)
        if labels is None or len(labels) != rows:
            raise ValueError(f"{0 if labels is None else len(labels)} labels for {rows} rows")
        dtype = self._arrays[LABELS].dtype
        with np.errstate(invalid="ignore", over="ignore"):
            values = labels.astype(dtype)
        good = np.isfinite(values) if dtype.kind == "f" else values == labels
        if not good.all():
            row = int(np.argmin(good))
            raise ValueError(f"row {row}: the label {labels[row]} is not a finite number of the type {dtype}")
        return values

    def __len__(self) -> int:
        """Rows appended so far."""
        return self._arrays["a/offsets"].length - 1

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
            self._unfinished.close()

    def _make_sure_of_room(self) -> None:
        """Fail now if the disk is full: libhdf5 may crash when it closes a file that it could not write.

        Raises:
            OSError: there is no room for the file.
        """
        arrays = [spool.size for spool in self._arrays.values()]
        rest = sum(len(each.content) for each in self._tokenizers) + len(json.dumps(self.settings)) + _OVERHEAD
        with self.part.open("wb") as file:
            file.truncate(sum(arrays) + rest)  # whether a file may be so large; this takes no room
            _reserve(file.fileno(), max(arrays) + rest)  # an array is removed once it is in the file

    def _write(self, file: h5py.File) -> None:
        version = FORMAT_VERSION if len(self._arrays) > len(_OF_SIDES) or not _suits_version_1(self._tokenizers) else 1
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
        for name in _OF_SIDES:
            self._arrays[name].move_into(file, name)
        if version > 1:
            self._write_tokenizers(file)
        for name in [name for name in self._arrays if name not in _OF_SIDES]:
            data = self._arrays[name].move_into(file, name)
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
        return content.digest_with({name: spool.digest for name, spool in self._arrays.items()})

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


def _id_type(tokenizer: Tokenizer) -> np.dtype[Any]:
    return np.min_scalar_type(len(tokenizer) - 1)


def _check_ids(side: str, ids: NDArray[np.integer[Any]], dtype: np.dtype[Any]) -> None:
    """Refuse ids that the array cannot hold."""
    largest = np.iinfo(dtype).max
    if len(ids) and not 0 <= ids.min() <= ids.max() <= largest:
        wrong = ids.max() if ids.max() > largest else ids.min()
        raise ValueError(f"side {side}: id {wrong} is not in 0..{largest}")


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
