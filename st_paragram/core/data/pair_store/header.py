"""What a pair store says of itself, and where its arrays stand in the file."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import h5py

from st_paragram.core.damage import one_line
from st_paragram.core.data.pair_store import plain_hdf5
from st_paragram.core.data.pair_store.format import (
    DIGEST,
    FORMAT,
    LABELS,
    REMAKE,
    ROW_LANGUAGES,
    SENTENCEPIECE_MODEL,
    SIDES,
    TOKENIZER,
    VERSIONS,
)
from st_paragram.core.data.pair_store.global_heaps import check_heaps
from st_paragram.core.data.pair_store.mapped_file import Extent
from st_paragram.core.tokenizers.base import KINDS, Tokenizer, load_tokenizer
from st_paragram.errors import StoreError

#: The arrays, with the kinds of numpy's types that they may have, and how many bytes a number may take.
_ARRAYS = {f"{side}/{name}": ("u", widest) for side in SIDES for name, widest in (("ids", 4), ("offsets", 8))}
_ARRAYS |= {ROW_LANGUAGES: ("u", 8), LABELS: ("iuf", 8)}
_TOKENIZERS = (SENTENCEPIECE_MODEL, TOKENIZER, *(f"{side}/{TOKENIZER}" for side in SIDES))


class StoredTokenizer(NamedTuple):
    """A tokenizer as a store keeps it."""

    kind: str
    content: bytes
    options: dict[str, Any]

    def load(self) -> Tokenizer:
        """Make the tokenizer; errors are those of `load_tokenizer`."""
        return load_tokenizer(self.kind, self.content, self.options)


@dataclass(frozen=True)
class Header:
    """The head of a pair store.

    Attributes:
        size: of the file, in bytes.
        format_version: of the file.
        languages: names of side a and side b.
        pairs: rows.
        max_length: where sentences were cut, in ids, if they were.
        seed: of the shuffle.
        settings: what the preparation noted.
        tokenizers: the one that both sides share, or that of each side.
        language_pairs: the pairs of languages that rows may have.
        extents: the arrays of the file by their names in it.
        digest: of the content, as the file says; None in files that were written before there was one.
    """

    size: int
    format_version: int
    languages: tuple[str, str]
    pairs: int
    max_length: int | None
    seed: int
    settings: dict[str, Any]
    tokenizers: tuple[StoredTokenizer, ...]
    language_pairs: tuple[tuple[str, str], ...]
    extents: dict[str, Extent]
    digest: str | None


def read_header(path: Path) -> Header:
    """Read the head of a store.

    Raises:
        StoreError: the file is missing, no pair store, of another version, incomplete or empty, has what no store has,
            or its tokenizer is of an unknown kind.
    """
    if not path.is_file():
        raise StoreError(f"{path}: no such pair store; make it with `st-paragram prepare`")
    try:
        with h5py.File(path, "r") as file:
            check_heaps(path, _places(file))
            header = _header(path, file)
    except plain_hdf5.UNREADABLE as error:
        raise StoreError(f"{path}: not a readable pair store ({one_line(error)}); {REMAKE}") from error
    for tokenizer in header.tokenizers:
        if tokenizer.kind not in KINDS:
            seen = f"its tokenizer is of the kind {tokenizer.kind!r}, this st_paragram knows {', '.join(KINDS)}"
            raise StoreError(f"{path}: {seen}; update st_paragram")
    return header


def _header(path: Path, file: h5py.File) -> Header:
    version = _check_root(path, file)
    languages, extents = _names(plain_hdf5.two_texts(file, "languages")), _extents(file)
    return Header(
        size=path.stat().st_size,
        format_version=version,
        languages=languages,
        pairs=plain_hdf5.whole(file, "pairs"),
        max_length=plain_hdf5.whole(file, "max_length", least=0) or None,
        seed=plain_hdf5.whole(file, "seed"),
        settings=plain_hdf5.json_value(plain_hdf5.text(file, "settings"), dict),
        tokenizers=_tokenizers(path, file) if version > 1 else (_sentencepiece(path, file),),
        language_pairs=_language_pairs(file, languages),
        extents=extents,
        digest=_digest(file),
    )


def _places(file: h5py.File) -> list[Extent]:
    """Where the arrays and tokenizers stand, as far as they are what they should be; no text is read for that."""
    if file.id.get_create_plist().get_sizes() != (8, 8):
        raise ValueError("addresses of other than 64 bits")
    places = []
    for name in (*_ARRAYS, *_TOKENIZERS):
        with suppress(*plain_hdf5.UNREADABLE):
            place, _, own = name.rpartition("/")
            kinds, widest = _ARRAYS.get(name, ("u", 1))
            places.append(plain_hdf5.extent(plain_hdf5.group(file, place) if place else file, own, kinds, widest))
    return places


def _check_root(path: Path, file: h5py.File) -> int:
    """The version of a complete store with rows."""
    if "format" not in file.attrs or plain_hdf5.text(file, "format") != FORMAT:
        raise StoreError(f"{path}: HDF5, but not a pair store of st_paragram; {REMAKE}")
    version = plain_hdf5.whole(file, "format_version")
    if version not in VERSIONS:
        known = " and ".join(map(str, VERSIONS))
        seen = f"pair store of format version {version}, this st_paragram reads versions {known}"
        raise StoreError(f"{path}: {seen}; {REMAKE}")
    if "complete" not in file.attrs or not plain_hdf5.yes_or_no(file, "complete"):
        raise StoreError(f"{path}: incomplete, its preparation did not finish; {REMAKE}")
    if plain_hdf5.whole(file, "pairs") < 1:
        raise StoreError(f"{path}: holds no pairs; {REMAKE} from text with pairs in it")
    return version


def _names(names: tuple[str, str]) -> tuple[str, str]:
    """Two names of languages, which will be printed and become parts of file names."""
    if not all(name.isprintable() for name in names):
        raise ValueError(f"languages named {names}")
    return names


def _sentencepiece(path: Path, file: h5py.File) -> StoredTokenizer:
    """The tokenizer of version 1."""
    options = {
        "lower_case": plain_hdf5.yes_or_no(file, "lower_case"),
        "segmentation": plain_hdf5.text(file, "segmentation"),
    }
    return StoredTokenizer("sentencepiece", plain_hdf5.content(path, file, SENTENCEPIECE_MODEL), options)


def _tokenizers(path: Path, file: h5py.File) -> tuple[StoredTokenizer, ...]:
    """The tokenizers of version 2."""
    shared = plain_hdf5.member(file, TOKENIZER) is not None
    places = [file] if shared else [plain_hdf5.group(file, side) for side in SIDES]
    return tuple(_tokenizer(path, place) for place in places)


def _tokenizer(path: Path, place: h5py.Group) -> StoredTokenizer:
    data = plain_hdf5.dataset(place, TOKENIZER)
    options = plain_hdf5.json_value(plain_hdf5.text(data, "options"), dict)
    return StoredTokenizer(plain_hdf5.text(data, "kind"), plain_hdf5.content(path, place, TOKENIZER), options)


def _language_pairs(file: h5py.File, languages: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    if plain_hdf5.member(file, ROW_LANGUAGES) is None:
        return (languages,)
    pairs = plain_hdf5.json_value(plain_hdf5.text(plain_hdf5.dataset(file, ROW_LANGUAGES), "pairs"), list)
    return tuple(_names((str(first), str(second))) for first, second in pairs)


def _extents(file: h5py.File) -> dict[str, Extent]:
    extents = {}
    for name, (kinds, widest) in _ARRAYS.items():
        place, _, own = name.rpartition("/")
        if place:
            extents[name] = plain_hdf5.extent(plain_hdf5.group(file, place), own, kinds, widest)
        elif plain_hdf5.member(file, own) is not None:
            extents[name] = plain_hdf5.extent(file, own, kinds, widest)
    return extents


def _digest(file: h5py.File) -> str | None:
    if DIGEST not in file.attrs:
        return None
    digest = plain_hdf5.text(file, DIGEST)
    if not re.fullmatch("[0-9a-f]{64}", digest):
        raise ValueError(f"{DIGEST} is {digest[:80]!r}, no SHA-256")
    return digest
