"""Pair stores: encoded parallel sentences in one HDF5 file, written once and read through memory
maps.

Rows are pairs of sentences, N of them. All arrays are one-dimensional, contiguous and
little-endian:

    <side>/ids          of side `a` and `b`: unsigned, the smallest type that holds the ids of the side's tokenizer
    <side>/offsets      uint64 (N + 1,): sentence i of the side is ids[offsets[i]:offsets[i + 1]]
    tokenizer           uint8: the content of the tokenizer that both sides share, or a/tokenizer
                        and b/tokenizer; with attributes `kind` and `options`, JSON
    row_languages       unsigned (N,), if there are several language pairs: the number of each row's
                        language pair in the attribute `pairs`, JSON
    labels              (N,), if rows have labels: finite numbers of any integer or float type

The root has the attributes `format`, `format_version`, `languages` (two names), `pairs` (N),
`max_length` (where sentences were cut, in ids, or 0), `seed` of the shuffle, `settings` (JSON),
and, written last, `content_sha256`: the SHA-256 in hexadecimal digits of one JSON object in UTF-8
with sorted keys and without white space:

    arrays              by name, without tokenizers: [type as numpy writes it ("<u2"), length, SHA-256 of its bytes]
    tokenizers          for the shared tokenizer or each side's: [kind, options, SHA-256 of the content]
    language_pairs      the language pairs that rows may have; [languages] if rows have none
    languages, pairs, max_length, seed, settings        the attributes
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
from types import TracebackType
from typing import Any

import h5py
import numpy as np
from numpy.typing import DTypeLike, NDArray

from st_paragram.core.files import naming_full_disk
from st_paragram.core.folders import temporary_folder
from st_paragram.core.native import kernels
from st_paragram.core.tokenizers import flat_ids
from st_paragram.core.tokenizers.base import Tokenizer, load_tokenizer
from st_paragram.errors import SettingsError, StoreError, refused, short

Rows = NDArray[np.integer[Any]]
Offsets = NDArray[np.int64]
_Stored = tuple[str, bytes, dict[str, Any]]  # a tokenizer: its kind, content and options

FORMAT, FORMAT_VERSION = "st_paragram pair store", 2
SIDES = ("a", "b")

_ROW_LANGUAGES, _LABELS = "row_languages", "labels"
_ARRAYS = ("a/ids", "a/offsets", "b/ids", "b/offsets", _ROW_LANGUAGES, _LABELS)
_CHECKED = 1 << 20  # numbers checked at a time
_REMAKE = "prepare it again with `st-paragram prepare`"


class PairStore:
    """Read a pair store. Its arrays are memory-mapped, so memory does not grow with the number of
    rows.

    `limit` restricts it to the first rows. They are a random sample, since preparation shuffles.

    Attributes:
        languages: Codes of side a and side b; several languages of a side are joined by hyphens:
            ("en", "fr-es-de").
        language_pairs: The language pairs that rows may have.
        max_length: Maximum ids per sentence, if sentences were truncated.
        settings: Settings and reports of the preparation.
        digest: SHA-256 of the content as it was written, whatever the limit.
        shared_tokenizer: Whether one tokenizer made the ids of both sides.

    Example:
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
        self.path = Path(path)
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
            self.digest, head = str(attributes["content_sha256"]), _head(file)
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
        self.shared_tokenizer = len(self._stored) == 1
        self.is_checked = False  # by `check`

    def __len__(self) -> int:
        """Number of rows."""
        return self.pairs

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path: every process maps the file itself."""
        return PairStore, (self.path, self.pairs)

    def check(self) -> None:
        """Read the whole file; raise StoreError if its digest is not the recorded one, or if rows
        are not valid.
        """
        with (
            refused(StoreError, self.path, "not a readable pair store", _REMAKE),
            h5py.File(self.path, "r") as file,
        ):
            found = _content_sha256(file)
        if found != self.digest:
            seen = f"the SHA-256 of its content is {found}, but {self.digest} was recorded"
            raise StoreError(f"{self.path}: damaged or edited: {seen}; {_REMAKE}")
        self.check_rows()
        self.is_checked = True

    def check_rows(self) -> None:
        """Raise StoreError if a sentence is outside the ids, an id outside its vocabulary, or a
        label not a number.
        """
        with refused(StoreError, self.path, "not a valid pair store", _REMAKE):
            for side, tokenizer in zip(SIDES, self.tokenizers, strict=True):
                _check_sentences(
                    self._maps[f"{side}/ids"], self._maps[f"{side}/offsets"], len(tokenizer), side
                )
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
        """Read rows, integers (n,), of side "a" or "b": flat ids, int64 or int32, and offsets,
        int64 (n + 1,).
        """
        ids, edges = self._maps[f"{side}/ids"], self._maps[f"{side}/offsets"]
        begins = edges[rows].astype(np.int64)
        ends = edges[rows + 1].astype(np.int64)
        counts = ends - begins
        if len(counts) and (counts.min() < 1 or begins.min() < 0 or ends.max() > len(ids)):
            raise StoreError(
                f"{self.path}: a sentence of side {side} is outside its ids; {_REMAKE}"
            )
        # lets other threads run during disk reads
        if dtype is np.int32 and (native := kernels()) is not None:
            offsets = flat_ids.starts(counts)
            result = np.empty(offsets[-1], dtype)
            native.gather(ids, begins, offsets, result)
            return result, offsets
        taken, offsets = flat_ids.take(ids, begins, counts)
        return taken.astype(dtype), offsets

    def lengths(self, side: str, begin: int, end: int) -> NDArray[np.int64]:
        """Count the ids of each sentence on one side, for consecutive rows, int64 (end - begin,)."""
        offsets: Offsets = self._maps[f"{side}/offsets"][begin : end + 1].astype(np.int64)
        return offsets[1:] - offsets[:-1]

    def texts(self, side: str, rows: Rows) -> Iterator[str]:
        """Decode one side of rows, integers (n,): lower-cased and truncated as stored, without
        unknown pieces.
        """
        tokenizer = self.tokenizer(side)
        ids, offsets = self.take(side, np.asarray(rows))
        if len(ids) and ids.max() >= len(tokenizer):
            raise StoreError(
                f"{self.path}: id {ids.max()} of side {side} is outside the vocabulary; {_REMAKE}"
            )
        return (tokenizer.decode(ids[start:end].tolist()) for start, end in pairwise(offsets))

    def row_languages(self, rows: Rows) -> list[tuple[str, str]]:
        """Return the languages of both sides of rows, integers (n,); `languages`, unless rows
        differ.
        """
        return [self.language_pairs[number] for number in self.language_numbers()[rows]]

    def language_numbers(self) -> NDArray[np.integer[Any]]:
        """The index of each row's languages in `language_pairs`, integers (pairs,)."""
        return self._maps.get(_ROW_LANGUAGES, np.zeros(self.pairs, np.uint8))[: self.pairs]

    def labels(self, rows: Rows) -> NDArray[Any] | None:
        """Return the labels of rows, integers (n,), as numbers (n,) of their stored type; None
        without labels.
        """
        return self._maps[_LABELS][rows] if _LABELS in self._maps else None


class PairStoreWriter:
    """Write a pair store; the file takes its name only when the `with` block ends without an error.

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
        """Begin a store; until it is complete, raw files next to it hold the appended rows.

        `tokenizer` is the tokenizer that made the ids, or one per side; `max_length` is its maximum
        ids per sentence. `settings` are facts about the preparation, as JSON values, and `seed` is
        that of the shuffle. If rows differ in languages, `row_languages` lists the language pairs;
        if rows have labels, `labels` is their number type.
        """
        self.settings: dict[str, Any] = dict(settings or {})
        self._head = {"languages": languages, "max_length": max_length or 0, "seed": seed}
        self.path, self._rows, self._ids = Path(path), 0, dict.fromkeys(SIDES, 0)
        self._language_pairs = list(row_languages or [languages])
        self._tokenizers = tokenizer if isinstance(tokenizer, tuple) else (tokenizer, tokenizer)
        self._types = types = dict[str, np.dtype[Any]]()
        for side, each in zip(SIDES, self._tokenizers, strict=True):
            types |= {
                f"{side}/ids": np.min_scalar_type(len(each) - 1),
                f"{side}/offsets": np.dtype(np.uint64),
            }
        if self._language_pairs != [languages]:
            types[_ROW_LANGUAGES] = np.min_scalar_type(len(self._language_pairs) - 1)
        if labels is not None:
            types[_LABELS] = np.dtype(labels)
        self._unfinished = ExitStack()
        self._folder = self._unfinished.enter_context(temporary_folder(self.path))
        paths = {name: self._folder / name.replace("/", ".") for name in types}
        self._raw = {
            name: self._unfinished.enter_context(path.open("wb")) for name, path in paths.items()
        }
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

        The sentences of a side, none of them empty, are flat ids and offsets (n + 1,), from 0. With
        several language pairs, `row_languages` are indices of the pairs, integers (n,); `labels`
        are given if the store has any.
        """
        rows, known = len(a_offsets) - 1, len(self._language_pairs)
        new: dict[str, NDArray[Any]] = {}
        sides = zip(SIDES, self._tokenizers, (a_ids, b_ids), (a_offsets, b_offsets), strict=True)
        for side, tokenizer, ids, offsets in sides:
            if len(offsets) - 1 != rows:
                raise ValueError(f"{rows} sentences on side a, {len(offsets) - 1} on side b")
            if offsets[0] != 0 or offsets[-1] != len(ids) or (np.diff(offsets) < 1).any():
                raise ValueError(
                    f"side {side}: offsets do not increase from 0 to {len(ids)}, the number of ids"
                )
            if len(ids) and not 0 <= ids.min() <= ids.max() < len(tokenizer):
                raise ValueError(
                    f"side {side}: ids in {ids.min()}..{ids.max()}, not in 0..{len(tokenizer) - 1}"
                )
            new |= {f"{side}/ids": ids, f"{side}/offsets": offsets[1:] + self._ids[side]}
        if pairs is None and known == 1:
            pairs = np.zeros(rows, np.uint8)
        if (
            pairs is None
            or len(pairs) != rows
            or (rows and not 0 <= pairs.min() <= pairs.max() < known)
        ):
            raise ValueError(
                f"give the index of the language pair, below {known}, for each of {rows} rows"
            )
        new[_ROW_LANGUAGES] = pairs
        if (labels is None) != (_LABELS not in self._types) or (
            labels is not None and len(labels) != rows
        ):
            raise ValueError(
                f"give a label for each of {rows} rows if the writer has a `labels` type, otherwise"
                " none"
            )
        if labels is not None:
            with np.errstate(invalid="ignore", over="ignore"):
                values = new[_LABELS] = labels.astype(self._types[_LABELS])
            if not (np.isfinite(values) if values.dtype.kind == "f" else values == labels).all():
                raise ValueError(
                    f"labels {labels.min()}..{labels.max()}: not all are finite numbers of"
                    f" {values.dtype}"
                )
        with naming_full_disk(self.path):
            for name, dtype in self._types.items():
                self._raw[name].write(new[name].astype(dtype).tobytes())
        self._rows += rows
        self._ids = {side: count + len(new[f"{side}/ids"]) for side, count in self._ids.items()}

    def __len__(self) -> int:
        """Rows appended so far."""
        return self._rows

    def __enter__(self) -> PairStoreWriter:
        """Return the writer."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Complete the file and give it its name; after an error, remove everything."""
        with self._unfinished:
            if kind is None:
                new, failed = (
                    self._folder / "store",
                    refused(StoreError, self.path, "not written", "free disk space"),
                )
                # libhdf5 may crash when it closes a file that it could not write. Space for the
                # largest array suffices, since each raw file is removed once it is in the store;
                # tokenizers and settings take less than 16 MB.
                needed = max(file.stat().st_size for file in self._folder.iterdir()) + (1 << 24)
                if shutil.disk_usage(self._folder).free < needed:
                    raise StoreError(
                        f"{self.path}: not written: no space left on the disk; free disk space"
                    )
                # "earliest", so that the same content gives the same bytes whatever the release of
                # HDF5
                with failed, h5py.File(new, "w", libver="earliest") as file:
                    self._write(file)
                new.replace(self.path)

    def _write(self, file: h5py.File) -> None:
        for name, raw in self._raw.items():
            raw.close()
            path, dtype = Path(raw.name), self._types[name]
            values = np.memmap(path, dtype, "r") if path.stat().st_size else np.empty(0, dtype)
            file.create_dataset(name, data=values)
            path.unlink()
        if _ROW_LANGUAGES in file:
            file[_ROW_LANGUAGES].attrs["pairs"] = json.dumps(
                self._language_pairs, ensure_ascii=False
            )
        first, second = self._tokenizers
        tokenizers = (
            {"tokenizer": first}
            if first == second
            else {"a/tokenizer": first, "b/tokenizer": second}
        )
        for name, tokenizer in tokenizers.items():
            data = file.create_dataset(name, data=np.frombuffer(tokenizer.content, np.uint8))
            data.attrs.update(
                kind=tokenizer.kind, options=json.dumps(tokenizer.options, ensure_ascii=False)
            )
        # names of files that are not in UTF-8 have surrogates, which are not text
        settings = (
            json.dumps(self.settings, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")
        )
        head = self._head | {"pairs": self._rows, "settings": settings}
        file.attrs.update(head, format=FORMAT, format_version=FORMAT_VERSION)
        file.flush()
        file.attrs["content_sha256"] = _content_sha256(file)


def _content_sha256(file: h5py.File) -> str:
    arrays = {name: file[name] for name in _ARRAYS if name in file}
    content = _head(file) | {
        "arrays": {
            name: [data.dtype.str, len(data), _sha256(_mapped(data).data)]
            for name, data in arrays.items()
        },
        "tokenizers": [
            [kind, options, _sha256(content)] for kind, content, options in _stored_tokenizers(file)
        ],
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return _sha256(text.encode("utf-8", "surrogateescape"))


def _sha256(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()


def _head(file: h5py.File) -> dict[str, Any]:
    """Read the attributes of a store, in the form that the digest covers."""
    languages = _names(file.attrs["languages"], "languages")
    pairs = (
        json.loads(file[_ROW_LANGUAGES].attrs["pairs"]) if _ROW_LANGUAGES in file else [languages]
    )
    numbers = {name: operator.index(file.attrs[name]) for name in ("pairs", "max_length", "seed")}
    return numbers | {
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
    """Raise ValueError if the attributes are not valid, or if the arrays do not fit them; rows are
    left to `check`.
    """
    for name in ("pairs", "max_length"):
        if head[name] < 0:
            raise ValueError(f"{name} is {head[name]}; it must be at least 0")
    if not isinstance(head["settings"], dict):
        raise ValueError(f"settings are {short(head['settings'])}, not a JSON object")
    if not isinstance(head["language_pairs"], list) or not head["language_pairs"]:
        raise ValueError(
            f"the language pairs of rows are {short(head['language_pairs'])}, not a list"
        )
    for languages in head["language_pairs"]:
        _names(languages, "the languages of a row")
    sizes = {f"{side}/offsets": head["pairs"] + 1 for side in SIDES}
    sizes |= {name: head["pairs"] for name in (_ROW_LANGUAGES, _LABELS) if name in maps}
    for side in SIDES:
        offsets = maps[f"{side}/offsets"]
        if len(offsets):
            sizes[f"{side}/ids"] = int(offsets[-1])
    for name, size in sizes.items():
        if len(maps[name]) != size:
            raise ValueError(f"{name} has {len(maps[name]):,} entries, but {size:,} are expected")
    for name, array in maps.items():
        kinds = "iuf" if name == _LABELS else "u"
        expected = (
            "numbers"
            if name == _LABELS
            else "uint64"
            if name.endswith("offsets")
            else "unsigned integers"
        )
        is_wrong = array.dtype.kind not in kinds or not array.dtype.isnative
        if is_wrong or (expected == "uint64" and array.dtype != np.uint64):
            raise ValueError(f"{name} has the type {array.dtype}, not {expected}")


def _check_sentences(ids: Rows, offsets: Rows, vocabulary: int, side: str) -> None:
    """Raise ValueError if offsets do not increase from 0, or if an id is not below the size of the
    vocabulary.
    """
    if offsets[0]:
        raise ValueError(f"side {side}: the first sentence begins at {offsets[0]}, not at 0")
    for begin in range(0, len(offsets) - 1, _CHECKED):
        block = offsets[begin : begin + _CHECKED + 1]
        if (wrong := np.flatnonzero(block[1:] <= block[:-1])).size:
            raise ValueError(
                f"side {side}: sentence {begin + wrong[0] + 1} ends where it begins, or before"
            )
    for begin in range(0, len(ids), _CHECKED):
        if (most := ids[begin : begin + _CHECKED].max()) >= vocabulary:
            raise ValueError(f"side {side}: id {most} in a vocabulary of {vocabulary:,} ids")


def _stored_tokenizers(file: h5py.File) -> list[_Stored]:
    stored = [file[name] for name in ("tokenizer", "a/tokenizer", "b/tokenizer") if name in file]
    if len(stored) != (1 if "tokenizer" in file else 2):
        raise ValueError("it needs one tokenizer for both sides, or one for each side")
    tokenizers = []
    for data in stored:
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
    offset = data.id.get_offset()  # None for an empty array
    return (
        np.asarray(np.memmap(data.file.filename, data.dtype, "r", offset, data.shape))
        if len(data)
        else data[:]
    )
