"""What a pair store says about itself, and where its arrays are in the file."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np

from st_paragram.core.files import folder_for_file
from st_paragram.core.pair_store import hdf5
from st_paragram.core.pair_store.format import (
    DIGEST,
    FORMAT,
    LABELS,
    REMAKE,
    ROW_LANGUAGES,
    SENTENCEPIECE_MODEL,
    SIDES,
    TOKENIZER,
    VERSIONS,
    Content,
)
from st_paragram.core.tokenizers.base import KINDS, Tokenizer, load_tokenizer
from st_paragram.errors import MissingExtraError, ParagramError, StoreError, one_line, short

_WHOLE = ("u1", "u2", "u4", "u8")
_NUMBERS = (*_WHOLE, "i1", "i2", "i4", "i8", "f2", "f4", "f8")
_NEEDED = {"a/ids": _WHOLE[:3], "a/offsets": _WHOLE, "b/ids": _WHOLE[:3], "b/offsets": _WHOLE}
#: The types of numpy that the numbers of each array may have.
_ARRAYS = _NEEDED | {ROW_LANGUAGES: _WHOLE, LABELS: _NUMBERS}
_TOKENIZERS = dict.fromkeys((SENTENCEPIECE_MODEL, TOKENIZER, *(f"{side}/{TOKENIZER}" for side in SIDES)), ("u1",))


class StoredTokenizer(NamedTuple):
    """A tokenizer as a store keeps it."""

    kind: str
    content: bytes
    options: dict[str, Any]

    def load(self) -> Tokenizer:
        """Make the tokenizer; errors are those of `load_tokenizer`."""
        return load_tokenizer(self.kind, self.content, self.options)


@dataclass(frozen=True)
class Header(Content):
    """The head of a pair store.

    Attributes:
        size: of the file, in bytes.
        format_version: of the file.
        extents: the arrays of the file by their names in it; they fit the number of rows, and the file.
        stated_digest: of the content, as the file says; None in files that were written before there was one.
    """

    tokenizers: tuple[StoredTokenizer, ...]
    language_pairs: tuple[tuple[str, str], ...]
    size: int
    format_version: int
    extents: dict[str, hdf5.Extent]
    stated_digest: str | None


def read_header(path: Path) -> Header:
    """Read the head of a store.

    Raises:
        StoreError: the file is missing, no pair store, of another version, incomplete or empty, has what no store has,
            its tokenizer is of an unknown kind, or an array has another length than it must have.
    """
    if wrong := folder_for_file(path, "a pair store, which is a file,"):
        raise StoreError(f"{wrong}; give its file")
    if not path.is_file():
        raise StoreError(f"{path}: no such pair store; create it with `st-paragram prepare`")
    try:
        with h5py.File(path, "r") as file:
            header = _header(path, file)
    except hdf5.UNREADABLE as error:
        raise StoreError(f"{path}: not a readable pair store ({one_line(error, about=path)}); {REMAKE}") from error
    for tokenizer in header.tokenizers:
        if tokenizer.kind not in KINDS:
            seen = (
                f"its tokenizer is of the kind {tokenizer.kind!r}; this version of st_paragram knows {', '.join(KINDS)}"
            )
            raise StoreError(f"{path}: {seen}; update st_paragram")
    _check_lengths(path, header)
    return header


def load_tokenizers(path: Path, header: Header) -> tuple[Tokenizer, Tokenizer]:
    """Make the tokenizers of side a and side b, one and the same object if the sides share it.

    Raises:
        StoreError: a tokenizer is damaged.
        MissingExtraError: a tokenizer needs a package that is not installed.
    """
    try:
        loaded = [tokenizer.load() for tokenizer in header.tokenizers]
        for tokenizer in loaded:
            # What is not text is found here, not in training.
            deque(map(tokenizer.piece, range(len(tokenizer))), maxlen=0)
    except MissingExtraError:
        raise
    except ParagramError as error:
        raise StoreError(f"{path}: damaged tokenizer ({one_line(error)}); {REMAKE}") from error
    return loaded[0], loaded[-1]


def _header(path: Path, file: h5py.File) -> Header:
    size, places = path.stat().st_size, _places(file)
    for name, place in places.items():
        if place.end > size:
            raise StoreError(f"{path}: truncated, {name} ends beyond the file; {REMAKE}")
    hdf5.check_heaps(path, places.values())
    version = _check_root(path, file)
    if missing := sorted(_NEEDED.keys() - places.keys()):
        raise ValueError(f"there is no data set {missing[0]}")
    languages = _names(np.asarray(file.attrs["languages"]).tolist())
    max_length = hdf5.attribute(file, "max_length", int)
    if max_length < 0:
        raise ValueError(f"max_length is {max_length}")
    return Header(
        languages=languages,
        pairs=hdf5.attribute(file, "pairs", int),
        max_length=max_length or None,
        seed=hdf5.attribute(file, "seed", int),
        settings=_json(hdf5.attribute(file, "settings", str), dict),
        tokenizers=_tokenizers(path, file, places) if version > 1 else (_sentencepiece(path, file, places),),
        language_pairs=_language_pairs(file) if ROW_LANGUAGES in places else (languages,),
        size=size,
        format_version=version,
        extents={name: place for name, place in places.items() if name in _ARRAYS},
        stated_digest=_digest(file),
    )


def _places(file: h5py.File) -> dict[str, hdf5.Extent]:
    """Where arrays and tokenizers are; reads no text."""
    if file.id.get_create_plist().get_sizes() != (8, 8):
        raise ValueError("addresses of other than 64 bits")
    found = {name: hdf5.dataset(file, name) for name in (*_ARRAYS, *_TOKENIZERS)}
    types = _ARRAYS | _TOKENIZERS
    return {name: hdf5.extent(data, name, types[name]) for name, data in found.items() if data is not None}


def _check_root(path: Path, file: h5py.File) -> int:
    """The version of a complete store with rows."""
    if "format" not in file.attrs or hdf5.attribute(file, "format", str) != FORMAT:
        raise StoreError(f"{path}: HDF5, but not a pair store of st_paragram; {REMAKE}")
    version = hdf5.attribute(file, "format_version", int)
    if version not in VERSIONS:
        known = " and ".join(map(str, VERSIONS))
        seen = f"pair store of format version {version}, this version of st_paragram reads {known}"
        raise StoreError(f"{path}: {seen}; {REMAKE}")
    if "complete" not in file.attrs or not hdf5.attribute(file, "complete", bool):
        raise StoreError(f"{path}: incomplete, its preparation did not finish; {REMAKE}")
    if hdf5.attribute(file, "pairs", int) < 1:
        raise StoreError(f"{path}: holds no pairs; {REMAKE} from text with pairs in it")
    return version


def _check_lengths(path: Path, header: Header) -> None:
    for name, extent in header.extents.items():
        side, _, kind = name.partition("/")
        if kind == "offsets" and extent.length != header.pairs + 1:
            raise StoreError(f"{path}: side {side} has {extent.length - 1} sentences, not {header.pairs}; {REMAKE}")
        if kind == "ids" and not extent.length:
            raise StoreError(f"{path}: side {side} has no ids; {REMAKE}")
        if not kind and extent.length != header.pairs:
            raise StoreError(f"{path}: {extent.length} {name} for {header.pairs} rows; {REMAKE}")


def _names(names: object) -> tuple[str, str]:
    """Two names of languages, which will be printed and become parts of file names."""
    match names:
        case [str(first), str(second)] if first.isprintable() and second.isprintable():
            return first, second
    raise ValueError(f"languages named {short(names)}")


def _json(written: str, kind: type) -> Any:  # noqa: ANN401
    """A value written as JSON, of a certain type, that can be written as UTF-8 again."""
    value = json.loads(written.encode("utf-8"))
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    if not isinstance(value, kind):
        raise ValueError(f"{short(value)} where JSON of another type is expected")
    return value


def _content(path: Path, places: Mapping[str, hdf5.Extent], name: str) -> bytes:
    if (place := places.get(name)) is None:
        raise ValueError(f"there is no data set {name}")
    with path.open("rb") as file:
        file.seek(place.position)
        return file.read(place.length)


def _sentencepiece(path: Path, file: h5py.File, places: Mapping[str, hdf5.Extent]) -> StoredTokenizer:
    """The tokenizer of version 1."""
    options = {
        "lower_case": hdf5.attribute(file, "lower_case", bool),
        "segmentation": hdf5.attribute(file, "segmentation", str),
    }
    return StoredTokenizer("sentencepiece", _content(path, places, SENTENCEPIECE_MODEL), options)


def _tokenizers(path: Path, file: h5py.File, places: Mapping[str, hdf5.Extent]) -> tuple[StoredTokenizer, ...]:
    """The tokenizers of version 2."""
    names = [TOKENIZER] if TOKENIZER in places else [f"{side}/{TOKENIZER}" for side in SIDES]
    return tuple(_tokenizer(_content(path, places, name), file[name]) for name in names)


def _tokenizer(content: bytes, data: h5py.Dataset) -> StoredTokenizer:
    options = _json(hdf5.attribute(data, "options", str), dict)
    return StoredTokenizer(hdf5.attribute(data, "kind", str), content, options)


def _language_pairs(file: h5py.File) -> tuple[tuple[str, str], ...]:
    pairs = _json(hdf5.attribute(file[ROW_LANGUAGES], "pairs", str), list)
    return tuple(map(_names, pairs))


def _digest(file: h5py.File) -> str | None:
    if DIGEST not in file.attrs:
        return None
    digest = hdf5.attribute(file, DIGEST, str)
    if not re.fullmatch("[0-9a-f]{64}", digest):
        raise ValueError(f"{DIGEST} is {digest[:80]!r}, no SHA-256")
    return digest
