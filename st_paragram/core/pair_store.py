"""Pair stores: encoded parallel sentences in one HDF5 file, read through memory maps.

Rows are pairs of sentences, N of them. All arrays are one-dimensional, contiguous and
little-endian:

    <side>/ids      of side `a` and `b`: unsigned, the smallest type that holds the ids of the
                    side's tokenizer
    <side>/offsets  uint64 (N + 1,): sentence i of the side is ids[offsets[i]:offsets[i + 1]]
    tokenizer       uint8: the content of the tokenizer that both sides share, or a/tokenizer
                    and b/tokenizer; with attributes `kind` and `options`, JSON
    row_languages   unsigned (N,), if there are several language pairs: the number of each row's
                    language pair in the attribute `pairs`, JSON
    labels          (N,), if rows have labels: finite numbers of any integer or float type

The root has the attributes `format`, `format_version`, `languages` (two names), `pairs` (N),
`max_length` (where sentences were cut, in ids, or 0), `seed` of the shuffle, `settings` (JSON),
and, written last, `content_sha256`: the SHA-256 in hexadecimal digits of one JSON object in UTF-8
with sorted keys and without white space:

    arrays          by name, without tokenizers: [type as numpy writes it ("<u2"), length,
                    SHA-256 of its bytes]
    tokenizers      for the shared tokenizer or each side's: [kind, options, SHA-256 of the content]
    language_pairs  the language pairs that rows may have; [languages] if rows have none
    languages, pairs, max_length, seed, settings    the attributes
"""

from __future__ import annotations

import hashlib
import json
import operator
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import DTypeLike, NDArray

from st_paragram.core.files import folder_for_file, is_hdf5, naming_full_disk
from st_paragram.core.folders import temporary_folder
from st_paragram.core.native import kernels
from st_paragram.core.tokenizers import flat_ids
from st_paragram.core.tokenizers.base import Tokenizer, valid
from st_paragram.core.tokenizers.loading import load_tokenizer
from st_paragram.errors import SettingsError, StoreError, refused, short

Rows = NDArray[np.integer[Any]]
Offsets = NDArray[np.int64]
_Stored = tuple[str, bytes, dict[str, Any]]  # a tokenizer: its kind, content and options

FORMAT = "st_paragram pair store"
FORMAT_VERSION = 2
SIDES = ("a", "b")

_ROW_LANGUAGES = "row_languages"
_LABELS = "labels"
_ARRAYS = ("a/ids", "a/offsets", "b/ids", "b/offsets", _ROW_LANGUAGES, _LABELS)
_CHECKED = 1 << 20  # numbers checked at a time
_REMAKE = "prepare it again with `st-paragram prepare`"


class PairStore:
    """Read a pair store.

    Its arrays are memory-mapped, so memory does not grow with the number of rows. `limit` restricts
    it to the first rows. They are a random sample, since preparation shuffles.

    Attributes:
        languages: Codes of both sides; several languages of a side are joined by hyphens:
            ("en", "fr-es-de").
        language_pairs: The language pairs that rows may have.
        max_length: Maximum ids per sentence, if sentences were truncated.
        settings: Settings and reports of the preparation.
        digest: SHA-256 of the content as it was written, whatever the limit.
        shared_tokenizer: Whether one tokenizer made the ids of both sides.

    Examples:
        >>> from st_paragram import PairStore
        >>> store = PairStore("data/en-es.h5")
        >>> import numpy as np
        >>> ids, offsets = store.take("a", np.array([0, 1]))  # flat ids and where sentences begin
        >>> len(offsets)
        3
    """

    def __init__(self, path: str | Path, limit: int | None = None) -> None:
        """Open a store."""
        if limit is not None and limit < 1:
            raise SettingsError(f"limit is {limit}; give at least 1")
        self.path: Path = Path(path)
        _check_file(self.path)
        with (
            refused(StoreError, self.path, "not a readable pair store", _REMAKE),
            h5py.File(self.path, "r") as file,
        ):
            attributes = file.attrs
            if attributes.get("format") != FORMAT or attributes["format_version"] != FORMAT_VERSION:
                raise StoreError(
                    f"{self.path}: HDF5, but not a pair store of version {FORMAT_VERSION};"
                    f" {_REMAKE}"
                )
            self.digest: str = str(attributes["content_sha256"])
            head = _head(file)
            self._stored = _stored_tokenizers(file)
            self._maps = {name: _mapped(file[name]) for name in _ARRAYS if name in file}
            _check_layout(head, self._maps)
        if not head["pairs"]:
            raise StoreError(f"{self.path}: holds no pairs; {_REMAKE} from text with pairs in it")
        self.languages: tuple[str, str] = tuple(head["languages"])
        self.language_pairs: tuple[tuple[str, str], ...] = tuple(map(tuple, head["language_pairs"]))
        self.max_length: int | None = head["max_length"] or None
        self.seed: int = head["seed"]
        self.settings: dict[str, Any] = head["settings"]
        self.pairs: int = min(head["pairs"], limit or head["pairs"])
        self.shared_tokenizer: bool = len(self._stored) == 1
        self.is_checked: bool = False  # by `check`

    def __len__(self) -> int:
        """Number of rows."""
        return self.pairs

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path: every process maps the file itself."""
        return PairStore, (self.path, self.pairs)

    def check(self) -> None:
        """Read the whole file; refuse a wrong digest and rows that are not valid."""
        with (
            refused(StoreError, self.path, "not a readable pair store", _REMAKE),
            h5py.File(self.path, "r") as file,
        ):
            digest = _content_sha256(file)
        if digest != self.digest:
            raise StoreError(
                f"{self.path}: damaged or edited: the SHA-256 of its content is {digest}, but"
                f" {self.digest} was recorded; {_REMAKE}"
            )
        self.check_rows()
        self.is_checked = True

    def check_rows(self) -> None:
        """Refuse sentences outside the ids, ids outside the vocabulary, and labels not finite."""
        with refused(StoreError, self.path, "not a valid pair store", _REMAKE):
            for side in SIDES:
                ids = self._maps[f"{side}/ids"]
                offsets = self._maps[f"{side}/offsets"]
                _check_sentences(ids, offsets, len(self.tokenizer(side)), side)
            numbers = self._maps.get(_ROW_LANGUAGES)
            if numbers is not None and numbers.max() >= len(self.language_pairs):
                raise ValueError(
                    f"a row has language pair {numbers.max()}, but there are"
                    f" {len(self.language_pairs)}"
                )
            labels = self._maps.get(_LABELS)
            if labels is not None and not np.isfinite(labels).all():
                raise ValueError("a label is not a finite number")

    @property
    def dropped(self) -> dict[str, Any]:
        """The counts of dropped rows by reason, if the preparation reports them."""
        value: Any = self.settings
        for name in ("report", "all", "dropped"):
            value = value.get(name) if isinstance(value, dict) else None
        return value if isinstance(value, dict) else {}

    @cached_property
    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """The tokenizers of side a and side b; the same object if the sides share it."""
        with refused(StoreError, self.path, "its tokenizer cannot be used", _REMAKE, SettingsError):
            loaded = [load_tokenizer(*stored) for stored in self._stored]
        return loaded[0], loaded[-1]

    def tokenizer(self, side: str = "a") -> Tokenizer:
        """The tokenizer that made the ids of a side."""
        return self.tokenizers[SIDES.index(side)]

    def take(
        self, side: str, rows: Rows, dtype: type[np.integer[Any]] = np.int64
    ) -> tuple[NDArray[Any], Offsets]:
        """Read rows, integers (n,), of a side: flat ids and offsets, int64 (n + 1,).

        `dtype` of the ids is int64 or int32.
        """
        ids = self._maps[f"{side}/ids"]
        edges = self._maps[f"{side}/offsets"]
        begins = edges[rows].astype(np.int64)
        ends = edges[rows + 1].astype(np.int64)
        counts = ends - begins
        if len(counts) and (counts.min() < 1 or begins.min() < 0 or ends.max() > len(ids)):
            raise StoreError(
                f"{self.path}: a sentence of side {side} is outside its ids; {_REMAKE}"
            )
        native = kernels()
        if dtype is np.int32 and native is not None:
            offsets = flat_ids.starts(counts)
            result = np.empty(offsets[-1], dtype)
            native.gather(ids, begins, offsets, result)  # other threads run during disk reads
            return result, offsets
        taken, offsets = flat_ids.take(ids, begins, counts)
        return taken.astype(dtype), offsets

    def lengths(self, side: str, begin: int, end: int) -> NDArray[np.int64]:
        """Count the ids of each sentence of a side, for consecutive rows, int64 (end - begin,)."""
        offsets: Offsets = self._maps[f"{side}/offsets"][begin : end + 1].astype(np.int64)
        return offsets[1:] - offsets[:-1]

    def texts(self, side: str, rows: Rows) -> Iterator[str]:
        """Decode one side of rows, integers (n,), as stored: truncated, without unknown tokens."""
        tokenizer = self.tokenizer(side)
        ids, offsets = self.take(side, np.asarray(rows))
        if len(ids) and ids.max() >= len(tokenizer):
            raise StoreError(
                f"{self.path}: id {ids.max()} of side {side} is outside the vocabulary; {_REMAKE}"
            )
        return (tokenizer.decode(ids[start:end].tolist()) for start, end in pairwise(offsets))

    def row_languages(self, rows: Rows) -> list[tuple[str, str]]:
        """Return the languages of both sides of rows, integers (n,)."""
        return [self.language_pairs[number] for number in self.language_numbers()[rows]]

    def language_numbers(self) -> NDArray[np.integer[Any]]:
        """Return the number of each row's languages in `language_pairs`, integers (pairs,)."""
        if _ROW_LANGUAGES not in self._maps:
            return np.zeros(self.pairs, np.uint8)
        return self._maps[_ROW_LANGUAGES][: self.pairs]

    def labels(self, rows: Rows) -> NDArray[Any] | None:
        """Return the labels of rows, integers (n,), in their stored type; None without labels."""
        if _LABELS not in self._maps:
            return None
        return self._maps[_LABELS][rows]


class PairStoreWriter:
    """Write a pair store; the file takes its name only when the `with` block ends without an error.

    Examples:
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
        """Begin a store; until it is complete, raw files next to it hold the appended rows.

        Args:
            path: File to write.
            languages: Codes of side a and side b.
            tokenizer: Tokenizer that made the ids, or one per side.
            max_length: Maximum ids per sentence, if sentences are truncated.
            settings: Facts about the preparation, as JSON values.
            seed: Seed of the shuffle.
            row_languages: Language pairs, if rows differ in languages.
            labels: Number type of labels, if rows have labels.
        """
        self.settings: dict[str, Any] = dict(settings or {})
        self._head = {"languages": languages, "max_length": max_length or 0, "seed": seed}
        self.path: Path = Path(path)
        self._rows = 0
        self._ids = dict.fromkeys(SIDES, 0)
        self._language_pairs = list(row_languages or [languages])
        self._tokenizers = tokenizer if isinstance(tokenizer, tuple) else (tokenizer, tokenizer)
        self._types: dict[str, np.dtype[Any]] = {}
        for side, side_tokenizer in zip(SIDES, self._tokenizers, strict=True):
            self._types[f"{side}/ids"] = np.min_scalar_type(len(side_tokenizer) - 1)
            self._types[f"{side}/offsets"] = np.dtype(np.uint64)
        if self._language_pairs != [languages]:
            self._types[_ROW_LANGUAGES] = np.min_scalar_type(len(self._language_pairs) - 1)
        if labels is not None:
            self._types[_LABELS] = np.dtype(labels)
        self._unfinished = ExitStack()
        self._folder = self._unfinished.enter_context(temporary_folder(self.path))
        self._raw = {}
        for name in self._types:
            file = (self._folder / name.replace("/", ".")).open("wb")
            self._raw[name] = self._unfinished.enter_context(file)
        for side in SIDES:
            self._raw[f"{side}/offsets"].write(bytes(8))

    def append(
        self,
        a_ids: Rows,
        a_offsets: Rows,
        b_ids: Rows,
        b_offsets: Rows,
        pairs: Rows | None = None,
        labels: NDArray[Any] | None = None,
    ) -> None:
        """Append n rows, or raise ValueError and append nothing.

        Args:
            a_ids: Flat ids of the sentences of side a, none of them empty.
            a_offsets: Offsets of side a, (n + 1,), from 0.
            b_ids: Flat ids of side b.
            b_offsets: Offsets of side b.
            pairs: Number of each row's language pair, (n,), if there are several.
            labels: Labels of the rows, (n,), if the store has any.
        """
        rows = len(a_offsets) - 1
        if len(b_offsets) - 1 != rows:
            raise ValueError(f"{rows} sentences on side a, {len(b_offsets) - 1} on side b")
        first, second = self._tokenizers
        _check_new_sentences("a", a_ids, a_offsets, len(first))
        _check_new_sentences("b", b_ids, b_offsets, len(second))
        new = {
            "a/ids": a_ids,
            "a/offsets": a_offsets[1:] + self._ids["a"],
            "b/ids": b_ids,
            "b/offsets": b_offsets[1:] + self._ids["b"],
        }
        if _ROW_LANGUAGES in self._types or pairs is not None:
            new[_ROW_LANGUAGES] = self._checked_pairs(pairs, rows)
        if _LABELS in self._types or labels is not None:
            new[_LABELS] = self._checked_labels(labels, rows)
        with naming_full_disk(self.path):
            for name, dtype in self._types.items():
                self._raw[name].write(new[name].astype(dtype).tobytes())
        self._rows += rows
        self._ids["a"] += len(a_ids)
        self._ids["b"] += len(b_ids)

    def _checked_pairs(self, pairs: Rows | None, rows: int) -> Rows:
        """Refuse numbers of language pairs that do not fit."""
        known = len(self._language_pairs)
        if (
            pairs is None
            or len(pairs) != rows
            or (rows and not 0 <= pairs.min() <= pairs.max() < known)
        ):
            raise ValueError(
                f"give the index of the language pair, below {known}, for each of {rows} rows"
            )
        return pairs

    def _checked_labels(self, labels: NDArray[Any] | None, rows: int) -> NDArray[Any]:
        """Convert labels to their stored type; refuse labels that do not fit."""
        if labels is None or _LABELS not in self._types or len(labels) != rows:
            raise ValueError(
                f"give a label for each of {rows} rows if the writer has a `labels` type, otherwise"
                " none"
            )
        with np.errstate(invalid="ignore", over="ignore"):
            values = labels.astype(self._types[_LABELS])
        fits = np.isfinite(values) if values.dtype.kind == "f" else values == labels
        if not fits.all():
            raise ValueError(
                f"labels {labels.min()}..{labels.max()}: not all are finite numbers of"
                f" {values.dtype}"
            )
        return values

    def __len__(self) -> int:
        """Rows appended so far."""
        return self._rows

    def __enter__(self) -> PairStoreWriter:
        """Return the writer."""
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Complete the file and give it its name; after an error, remove everything."""
        with self._unfinished:
            if kind is not None:
                return
            # libhdf5 may crash when it closes a file that it could not write. Space for the
            # largest array suffices, since each raw file is removed once it is in the store;
            # tokenizers and settings take less than 16 MB.
            largest = max(file.stat().st_size for file in self._folder.iterdir())
            if shutil.disk_usage(self._folder).free < largest + (1 << 24):
                raise StoreError(
                    f"{self.path}: not written: no space left on the disk; free disk space"
                )
            new = self._folder / "store"
            # "earliest", so that the same content gives the same bytes whatever the release of HDF5
            with (
                refused(StoreError, self.path, "not written", "free disk space"),
                h5py.File(new, "w", libver="earliest") as file,
            ):
                self._write(file)
            new.replace(self.path)

    def _write(self, file: h5py.File) -> None:
        for name, raw in self._raw.items():
            raw.close()
            path = Path(raw.name)
            values: NDArray[Any] = np.empty(0, self._types[name])
            if path.stat().st_size:
                values = np.memmap(path, self._types[name], "r")
            file.create_dataset(name, data=values)
            path.unlink()
        if _ROW_LANGUAGES in file:
            file[_ROW_LANGUAGES].attrs["pairs"] = _json(self._language_pairs)
        first, second = self._tokenizers
        if first == second:
            _write_tokenizer(file, "tokenizer", first)
        else:
            _write_tokenizer(file, "a/tokenizer", first)
            _write_tokenizer(file, "b/tokenizer", second)
        # names of files that are not in UTF-8 have surrogates, which are not text
        settings = valid(_json(self.settings))
        file.attrs.update(self._head, pairs=self._rows, settings=settings)
        file.attrs.update(format=FORMAT, format_version=FORMAT_VERSION)
        file.flush()
        file.attrs["content_sha256"] = _content_sha256(file)


def _write_tokenizer(file: h5py.File, name: str, tokenizer: Tokenizer) -> None:
    data = file.create_dataset(name, data=np.frombuffer(tokenizer.content, np.uint8))
    data.attrs.update(kind=tokenizer.kind, options=_json(tokenizer.options))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _check_new_sentences(side: str, ids: Rows, offsets: Rows, vocabulary: int) -> None:
    """Raise ValueError if offsets do not fit the ids, or if an id is not in the vocabulary."""
    if offsets[0] != 0 or offsets[-1] != len(ids) or (np.diff(offsets) < 1).any():
        raise ValueError(
            f"side {side}: offsets do not increase from 0 to {len(ids)}, the number of ids"
        )
    if len(ids) and not 0 <= ids.min() <= ids.max() < vocabulary:
        raise ValueError(
            f"side {side}: ids in {ids.min()}..{ids.max()}, not in 0..{vocabulary - 1}"
        )


def _content_sha256(file: h5py.File) -> str:
    content = _head(file)
    arrays: dict[str, Any] = {}
    for name in _ARRAYS:
        if name in file:
            data = file[name]
            arrays[name] = [data.dtype.str, len(data), _sha256(_mapped(data).data)]
    content["arrays"] = arrays
    content["tokenizers"] = []
    for kind, tokenizer_content, options in _stored_tokenizers(file):
        content["tokenizers"].append([kind, options, _sha256(tokenizer_content)])
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return _sha256(text.encode("utf-8", "surrogateescape"))


def _sha256(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()


def _check_file(path: Path) -> None:
    """Refuse a path that is not an HDF5 file."""
    if wrong := folder_for_file(path):
        raise StoreError(f"{wrong}; name a pair store (.h5)")
    if not path.exists():
        raise StoreError(
            f"{path}: no such file; check the path, or make a pair store with `st-paragram prepare`"
        )
    with refused(StoreError, path, "not a readable pair store", _REMAKE):
        is_store = is_hdf5(path)
    if not is_store:
        raise StoreError(
            f"{path}: not a pair store, since it is not HDF5; make one with `st-paragram prepare`"
        )


def _head(file: h5py.File) -> dict[str, Any]:
    """Read the attributes of a store, in the form that the digest covers."""
    languages = _names(file.attrs["languages"], "languages")
    pairs = [languages]
    if _ROW_LANGUAGES in file:
        pairs = json.loads(file[_ROW_LANGUAGES].attrs["pairs"])
    return {
        "pairs": operator.index(file.attrs["pairs"]),
        "max_length": operator.index(file.attrs["max_length"]),
        "seed": operator.index(file.attrs["seed"]),
        "languages": languages,
        "language_pairs": pairs,
        "settings": json.loads(file.attrs["settings"]),
    }


def _names(value: Any, what: str) -> list[str]:
    """Return a list of two texts."""
    names = [] if isinstance(value, str | bytes | dict) else list(value)
    if len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{what} are {short(value)}, not two texts")
    return names


def _check_layout(head: Mapping[str, Any], maps: Mapping[str, NDArray[Any]]) -> None:
    """Raise ValueError if attributes are not valid or arrays do not fit them.

    Rows are left to `check`.
    """
    for name in ("pairs", "max_length"):
        if head[name] < 0:
            raise ValueError(f"{name} is {head[name]}; it must be at least 0")
    if not isinstance(head["settings"], dict):
        raise ValueError(f"settings are {short(head['settings'])}, not a JSON object")
    pairs = head["language_pairs"]
    if not isinstance(pairs, list) or not pairs:
        raise ValueError(f"the language pairs of rows are {short(pairs)}, not a list")
    for languages in pairs:
        _names(languages, "the languages of a row")
    rows = head["pairs"]
    for side in SIDES:
        offsets = maps[f"{side}/offsets"]
        ids = maps[f"{side}/ids"]
        _check_array(f"{side}/offsets", offsets, rows + 1, "uint64")
        _check_array(f"{side}/ids", ids, int(offsets[-1]), "unsigned integers")
    if _ROW_LANGUAGES in maps:
        _check_array(_ROW_LANGUAGES, maps[_ROW_LANGUAGES], rows, "unsigned integers")
    if _LABELS in maps:
        _check_array(_LABELS, maps[_LABELS], rows, "numbers")


def _check_array(name: str, array: NDArray[Any], size: int, kind: str) -> None:
    """Raise ValueError if an array does not have the size or the kind of numbers."""
    if len(array) != size:
        raise ValueError(f"{name} has {len(array):,} entries, but {size:,} are expected")
    kinds = "iuf" if kind == "numbers" else "u"
    fits = array.dtype.kind in kinds and array.dtype.isnative
    if not fits or (kind == "uint64" and array.dtype != np.uint64):
        raise ValueError(f"{name} has the type {array.dtype}, not {kind}")


def _check_sentences(ids: Rows, offsets: Rows, vocabulary: int, side: str) -> None:
    """Raise ValueError if offsets do not increase from 0, or if an id is not in the vocabulary."""
    if offsets[0]:
        raise ValueError(f"side {side}: the first sentence begins at {offsets[0]}, not at 0")
    for begin in range(0, len(offsets) - 1, _CHECKED):
        block = offsets[begin : begin + _CHECKED + 1]
        wrong = np.flatnonzero(block[1:] <= block[:-1])
        if len(wrong):
            raise ValueError(
                f"side {side}: sentence {begin + wrong[0] + 1} ends where it begins, or before"
            )
    for begin in range(0, len(ids), _CHECKED):
        largest = ids[begin : begin + _CHECKED].max()
        if largest >= vocabulary:
            raise ValueError(f"side {side}: id {largest} in a vocabulary of {vocabulary:,} ids")


def _stored_tokenizers(file: h5py.File) -> list[_Stored]:
    names = ["tokenizer"] if "tokenizer" in file else ["a/tokenizer", "b/tokenizer"]
    if not all(name in file for name in names):
        raise ValueError("it needs one tokenizer for both sides, or one for each side")
    tokenizers = []
    for name in names:
        data = file[name]
        kind = data.attrs["kind"]
        options = json.loads(data.attrs["options"])
        if not isinstance(kind, str) or not isinstance(options, dict) or data.dtype != np.uint8:
            raise ValueError(
                f"a tokenizer of kind {short(kind)} with options {short(options)} in {data.dtype}"
            )
        tokenizers.append((kind, data[()].tobytes(), options))
    return tokenizers


def _mapped(data: h5py.Dataset) -> NDArray[Any]:
    """Map an array in a file; for scattered rows, h5py itself takes a hundred times as long."""
    if data.ndim != 1 or data.is_virtual or data.external is not None:
        raise ValueError(f"{data.name} is not an array in one dimension in this file")
    if not len(data):
        return data[:]
    return np.asarray(
        np.memmap(data.file.filename, data.dtype, "r", data.id.get_offset(), data.shape)
    )
