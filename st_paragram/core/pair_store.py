"""Pair stores: encoded parallel sentences in one HDF5 file, written once and read through memory maps.

N is the number of rows, which are pairs of sentences. The file has, for each side `a` and `b`:

    <side>/ids          unsigned, the smallest type that holds the ids of the side's tokenizer
    <side>/offsets      uint64 (N + 1,): sentence i of the side is ids[offsets[i]:offsets[i + 1]]
    tokenizer           uint8: the content of the tokenizer that both sides share; or, if they do not,
    a/tokenizer, b/tokenizer        the content of each side's own tokenizer
      kind, options                 attributes of these: the tokenizer's kind, and its options as JSON
    row_languages       unsigned (N,), where rows are of several pairs of languages: the number of each row's pair
      pairs                         its attribute, JSON: the pairs of languages, a list of lists of two names
    labels              (N,), where rows have labels: finite numbers of any integer or float type

All are one-dimensional, contiguous and little-endian. The attributes of the root are `format` and `format_version`;
`languages`, two names; `pairs`, which is N; `max_length`, where sentences were cut, in ids, or 0; `seed` of the
shuffle; `settings`, JSON, what the preparation noted; and, written last, `content_sha256`. That is the SHA-256, in
hexadecimal digits, of one JSON object in UTF-8: keys sorted, no white space, characters beyond ASCII as they are.

    arrays              for each array above but the tokenizers, by its name: [type, length, digest]; the type as numpy
                        writes it ("<u2"), and the SHA-256 of the array's bytes
    tokenizers          of the shared tokenizer or of each side's: [kind, options, SHA-256 of the content]
    language_pairs      the pairs of languages that rows may have; [languages] where rows have none
    languages, pairs, max_length, seed, settings        the attributes
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import h5py
import numpy as np
from numpy.typing import DTypeLike, NDArray

from st_paragram.core.files import temporary_folder
from st_paragram.core.native import kernels
from st_paragram.core.tokenizers import flat_ids
from st_paragram.core.tokenizers.base import Tokenizer, load_tokenizer
from st_paragram.errors import SettingsError, StoreError, one_line, refused

Rows = NDArray[np.integer[Any]]

FORMAT, FORMAT_VERSION = "st_paragram pair store", 2
SIDES = ("a", "b")

_ROW_LANGUAGES, _LABELS = "row_languages", "labels"
_ARRAYS = ("a/ids", "a/offsets", "b/ids", "b/offsets", _ROW_LANGUAGES, _LABELS)
_REMAKE = "prepare it again with `st-paragram prepare`"


class _Stored(NamedTuple):
    """A tokenizer as a store keeps it."""

    kind: str
    content: bytes
    options: dict[str, Any]


class PairStore:
    """A pair store. Its arrays are memory-mapped, so memory does not grow with the number of rows.

    Attributes:
        path: The file.
        pairs: Rows, which are pairs of sentences; those within the limit.
        languages: Names of side a and side b; several languages of a side have dashes between: ("en", "fr-es-de").
        language_pairs: The pairs of languages that rows may have.
        max_length: Where sentences were cut, in ids, if they were.
        seed: Of the shuffle.
        settings: What the preparation noted.
        digest: SHA-256 of the content as it was written, whatever the limit.
        shared_tokenizer: Whether one tokenizer made the ids of both sides.

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

    def __init__(self, path: str | Path, limit: int | None = None) -> None:
        """Open a store.

        Args:
            path: An HDF5 file of this format.
            limit: Show at most the first so many rows: a random sample, since preparation shuffles.

        Raises:
            SettingsError: The limit is below 1.
            StoreError: The file is missing, truncated, no pair store, or has no rows.
        """
        if limit is not None and limit < 1:
            raise SettingsError(f"the limit is {limit} pairs; give at least 1")
        self.path = Path(path)
        with refused(StoreError, self.path, "not a readable pair store", _REMAKE), h5py.File(self.path, "r") as file:
            attributes = file.attrs
            if attributes.get("format") != FORMAT or attributes["format_version"] not in (1, FORMAT_VERSION):
                raise StoreError(f"{self.path}: HDF5, but no pair store of format version {FORMAT_VERSION}; {_REMAKE}")
            self._rows = int(attributes["pairs"])
            first, second = attributes["languages"]
            self.languages: tuple[str, str] = (first, second)
            self.max_length = int(attributes["max_length"]) or None
            self.seed = int(attributes["seed"])
            self.settings: dict[str, Any] = json.loads(attributes["settings"])
            self.digest = str(attributes["content_sha256"])
            self.language_pairs: tuple[tuple[str, str], ...] = (self.languages,)
            if _ROW_LANGUAGES in file:
                pairs = json.loads(file[_ROW_LANGUAGES].attrs["pairs"])
                self.language_pairs = tuple((first, second) for first, second in pairs)
            self._stored = _stored_tokenizers(file)
            self._maps = {name: _mapped(self.path, file[name]) for name in _ARRAYS if name in file}
        if not self._rows:
            raise StoreError(f"{self.path}: holds no pairs; {_REMAKE} from text with pairs in it")
        self.pairs = self._rows if limit is None else min(self._rows, limit)
        self.shared_tokenizer = len(self._stored) == 1

    def __len__(self) -> int:
        """Number of rows."""
        return self.pairs

    def __reduce__(self) -> tuple[Any, ...]:
        """Every process maps the file itself."""
        return PairStore, (self.path, self.pairs)

    def check(self) -> None:
        """Read the whole file, and raise StoreError if the digest of its content is not what was written."""
        found = _digest(
            {
                name: [each.dtype.str, len(each), hashlib.sha256(each.data).hexdigest()]
                for name, each in self._maps.items()
            },
            self._stored,
            language_pairs=self.language_pairs,
            languages=self.languages,
            max_length=self.max_length or 0,
            pairs=self._rows,
            seed=self.seed,
            settings=self.settings,
        )
        if found != self.digest:
            seen = (
                f"damaged or edited: the SHA-256 of its content is {found}, and was {self.digest} when it was written"
            )
            raise StoreError(f"{self.path}: {seen}; {_REMAKE}")

    @cached_property
    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """The tokenizers of side a and side b, one and the same object if the sides share it."""
        try:
            loaded = [load_tokenizer(*stored) for stored in self._stored]
        except SettingsError as error:
            raise StoreError(f"{self.path}: its tokenizer cannot be used ({one_line(error)}); {_REMAKE}") from error
        return loaded[0], loaded[-1]

    def tokenizer(self, side: str = "a") -> Tokenizer:
        """The tokenizer that made the ids of a side."""
        return self.tokenizers[SIDES.index(side)]

    def take(
        self, side: str, rows: Rows, dtype: type[np.integer[Any]] = np.int64
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Read sentences of side "a" or "b": rows, integers (n,), in any order, give flat ids and offsets (n + 1,).

        The ids are int64 or int32, as `dtype` says; the offsets are int64.
        """
        ids, edges = self._maps[f"{side}/ids"], self._maps[f"{side}/offsets"]
        begins = edges[rows].astype(np.int64)
        counts = edges[rows + 1].astype(np.int64) - begins
        if dtype is np.int32 and (native := kernels()) is not None:  # other threads run while the disk is waited for
            offsets = flat_ids.starts(counts)
            result = np.empty(offsets[-1], dtype)
            native.gather(ids, begins, offsets, result)
            return result, offsets
        taken, offsets = flat_ids.take(ids, begins, counts)
        return taken.astype(dtype), offsets

    def lengths(self, side: str, begin: int, end: int) -> NDArray[np.int64]:
        """Numbers of ids of one side, of rows one after another, int64 (end - begin,)."""
        offsets: NDArray[np.int64] = self._maps[f"{side}/offsets"][begin : end + 1].astype(np.int64)
        return offsets[1:] - offsets[:-1]

    def texts(self, side: str, rows: Rows) -> Iterator[str]:
        """Decode one side of rows, integers (n,): lower-cased and cut as stored, unknown pieces missing."""
        tokenizer = self.tokenizer(side)
        ids, offsets = self.take(side, np.asarray(rows))
        return (tokenizer.decode(ids[start:end].tolist()) for start, end in pairwise(offsets))

    def row_languages(self, rows: Rows) -> list[tuple[str, str]]:
        """The languages of both sides of rows, integers (n,); `languages`, unless they differ from row to row."""
        if _ROW_LANGUAGES not in self._maps:
            return [self.languages] * len(rows)
        return [self.language_pairs[number] for number in self._maps[_ROW_LANGUAGES][rows]]

    def language_numbers(self) -> NDArray[np.integer[Any]]:
        """For each row the place of its languages in `language_pairs`, integers (pairs,)."""
        numbers = self._maps.get(_ROW_LANGUAGES)
        return np.zeros(self.pairs, np.uint8) if numbers is None else numbers[: self.pairs]

    def labels(self, rows: Rows) -> NDArray[Any] | None:
        """The labels of rows, integers (n,), as numbers (n,) of the type they are stored in; None if there are none."""
        labels = self._maps.get(_LABELS)
        return None if labels is None else labels[rows]


class _Spool:
    """A raw file of numbers, which grows until their number is known; HDF5 needs it for an array in one piece."""

    def __init__(self, path: Path, dtype: np.dtype[Any], closing: ExitStack) -> None:
        self.path, self.dtype, self.length = path, dtype, 0
        self._file, self._hash = closing.enter_context(path.open("wb")), hashlib.sha256()

    def append(self, values: NDArray[Any]) -> None:
        """Append numbers, converted to the type of the array."""
        data = values.astype(self.dtype).tobytes()
        self._file.write(data)
        self._hash.update(data)
        self.length += len(values)

    def described(self) -> list[Any]:
        """Type, number of numbers, and SHA-256 of their bytes."""
        return [self.dtype.str, self.length, self._hash.hexdigest()]

    def move_into(self, file: h5py.File, name: str) -> None:
        """Make a contiguous data set of the numbers, and remove the raw file."""
        self._file.close()
        data = np.memmap(self.path, self.dtype, "r") if self.length else np.empty(0, self.dtype)
        file.create_dataset(name, data=data)
        del data
        self.path.unlink()


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
        """Begin a store; until it is complete, raw files next to it hold what is appended.

        Args:
            path: Output file.
            languages: Names of side a and side b, e.g. ("en", "es").
            tokenizer: The tokenizer of the ids, or that of each side; it is stored inside.
            max_length: Where sentences were cut, in ids.
            settings: Facts about the preparation; anything JSON holds.
            seed: The seed of the shuffle.
            row_languages: The pairs of languages that rows may have, if they differ from row to row.
            labels: The type of the rows' labels, an integer or float type, if rows have labels.

        Raises:
            SettingsError: The labels would be no numbers.
        """
        self.path, self.languages, self.max_length, self.seed = Path(path), languages, max_length, seed
        self.settings: dict[str, Any] = dict(settings or {})
        self._language_pairs = list(row_languages or [languages])
        self._tokenizers = tokenizer if isinstance(tokenizer, tuple) else (tokenizer, tokenizer)
        types: dict[str, np.dtype[Any]] = {}
        for side, each in zip(SIDES, self._tokenizers, strict=True):
            types |= {f"{side}/ids": np.min_scalar_type(len(each) - 1), f"{side}/offsets": np.dtype(np.uint64)}
        if self._language_pairs != [languages]:
            types[_ROW_LANGUAGES] = np.min_scalar_type(len(self._language_pairs) - 1)
        if labels is not None:
            types[_LABELS] = np.dtype(labels)
            if types[_LABELS].kind not in "iuf":
                raise SettingsError(f"labels of the type {types[_LABELS]}; give an integer or float type")
        self._unfinished = ExitStack()
        self._folder = self._unfinished.enter_context(temporary_folder(self.path))
        self._arrays = {
            name: _Spool(self._folder / name.replace("/", "."), dtype, self._unfinished)
            for name, dtype in types.items()
        }
        for side in SIDES:
            self._arrays[f"{side}/offsets"].append(np.zeros(1, np.uint64))

    def append(
        self,
        a_ids: Rows,
        a_offsets: Rows,
        b_ids: Rows,
        b_offsets: Rows,
        pairs: Rows | None = None,
        labels: NDArray[Any] | None = None,
    ) -> None:
        """Append n rows.

        Args:
            a_ids: The ids of the sentences of side a, one after another.
            a_offsets: Integers (n + 1,), from 0: where sentences begin and end.
            b_ids: As of side a.
            b_offsets: As of side a.
            pairs: Integers (n,), the place of each row's pair in `row_languages`; needed if there are several.
            labels: Numbers (n,), needed if rows have labels.

        Raises:
            ValueError: Numbers of rows differ, a sentence is empty, or a value is out of its range, missing, or given
                where the store has none. Nothing is appended then.
        """
        rows, known = len(a_offsets) - 1, len(self._language_pairs)
        new: dict[str, NDArray[Any]] = {}
        sides = zip(SIDES, self._tokenizers, (a_ids, b_ids), (a_offsets, b_offsets), strict=True)
        for side, tokenizer, ids, offsets in sides:
            if len(offsets) - 1 != rows:
                raise ValueError(f"{rows} sentences on side a, {len(offsets) - 1} on side b")
            if offsets[0] != 0 or offsets[-1] != len(ids) or (np.diff(offsets) < 1).any():
                raise ValueError(f"side {side}: offsets do not increase from 0 to {len(ids)}, the number of ids")
            if len(ids) and not 0 <= ids.min() <= ids.max() < len(tokenizer):
                raise ValueError(f"side {side}: ids in {ids.min()}..{ids.max()}, not in 0..{len(tokenizer) - 1}")
            new |= {f"{side}/ids": ids, f"{side}/offsets": offsets[1:] + self._arrays[f"{side}/ids"].length}
        if pairs is None and known == 1:
            pairs = np.zeros(rows, np.uint8)
        if pairs is None or len(pairs) != rows or (rows and not 0 <= pairs.min() <= pairs.max() < known):
            raise ValueError(f"for each of {rows} rows, give the number of its pair of languages, below {known}")
        new[_ROW_LANGUAGES] = pairs
        if (labels is None) != (_LABELS not in self._arrays) or (labels is not None and len(labels) != rows):
            raise ValueError(f"labels for each of {rows} rows belong to stores that are opened with their type, alone")
        if labels is not None:
            new[_LABELS] = _converted(labels, self._arrays[_LABELS].dtype)
        for name, spool in self._arrays.items():
            spool.append(new[name])

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
        with self._unfinished:
            if kind is None:
                # libhdf5 may crash when it closes a file that it could not write. Room for the largest array is enough,
                # since each raw file goes once it is in the store; tokenizers and settings have less than 16 MB.
                needed = max(spool.length * spool.dtype.itemsize for spool in self._arrays.values()) + (1 << 24)
                if shutil.disk_usage(self._folder).free < needed:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
                # "earliest", so that the same content gives the same bytes whatever the release of HDF5
                try:
                    with h5py.File(self._folder / "store", "w", libver="earliest") as file:
                        self._write(file)
                except RuntimeError as error:  # at the end, where h5py has not written all
                    raise OSError(f"{self.path}: {one_line(error)}") from error
                (self._folder / "store").replace(self.path)

    def _write(self, file: h5py.File) -> None:
        arrays = {name: spool.described() for name, spool in self._arrays.items()}
        for name, spool in self._arrays.items():
            spool.move_into(file, name)
        if _ROW_LANGUAGES in file:
            file[_ROW_LANGUAGES].attrs["pairs"] = json.dumps(self._language_pairs, ensure_ascii=False)
        first, second = self._tokenizers
        tokenizers = {"tokenizer": first} if first == second else {"a/tokenizer": first, "b/tokenizer": second}
        for name, tokenizer in tokenizers.items():
            data = file.create_dataset(name, data=np.frombuffer(tokenizer.content, np.uint8))
            data.attrs.update(kind=tokenizer.kind, options=json.dumps(tokenizer.options, ensure_ascii=False))
        # names of files that are not in UTF-8 have characters that no text may have
        settings = json.dumps(self.settings, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")
        values = {"languages": list(self.languages), "max_length": self.max_length or 0}
        values |= {"pairs": len(self), "seed": self.seed}
        file.attrs.update(values, format=FORMAT, format_version=FORMAT_VERSION, settings=settings)
        file.attrs["content_sha256"] = _digest(
            arrays, [*tokenizers.values()], language_pairs=self._language_pairs, settings=json.loads(settings), **values
        )


def _digest(arrays: Mapping[str, list[Any]], tokenizers: Sequence[_Stored | Tokenizer], **values: Any) -> str:  # noqa: ANN401
    described = [[each.kind, each.options, hashlib.sha256(each.content).hexdigest()] for each in tokenizers]
    whole = {"arrays": arrays, "tokenizers": described, **values}
    text = json.dumps(whole, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()  # damaged names are not UTF-8


def _stored_tokenizers(file: h5py.File) -> list[_Stored]:
    if "sentencepiece_model" in file:  # version 1, which knew this tokenizer alone
        options = {"lower_case": bool(file.attrs["lower_case"]), "segmentation": file.attrs["segmentation"]}
        return [_Stored("sentencepiece", file["sentencepiece_model"][()].tobytes(), options)]
    stored = [file[name] for name in ("tokenizer", "a/tokenizer", "b/tokenizer") if name in file]
    return [_Stored(each.attrs["kind"], each[()].tobytes(), json.loads(each.attrs["options"])) for each in stored]


def _mapped(path: Path, data: h5py.Dataset) -> NDArray[Any]:
    """An array in the file; h5py itself takes a hundred times as long for rows here and there."""
    offset = data.id.get_offset()  # None of an empty one
    return np.asarray(np.memmap(path, data.dtype, "r", offset, data.shape)) if len(data) else np.empty(0, data.dtype)


def _converted(labels: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    with np.errstate(invalid="ignore", over="ignore"):
        values = labels.astype(dtype)
    if not (np.isfinite(values) if dtype.kind == "f" else values == labels).all():
        raise ValueError(f"labels {labels.min()}..{labels.max()}: not all are finite numbers of the type {dtype}")
    return values
