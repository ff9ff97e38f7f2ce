"""What a pair store says of itself, and where its arrays stand in the file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
from numpy.typing import NDArray

from st_paragram.data.pair_store.format import (
    FORMAT,
    LABELS,
    REMAKE,
    ROW_LANGUAGES,
    SENTENCEPIECE_MODEL,
    SIDES,
    TOKENIZER,
    VERSIONS,
)
from st_paragram.errors import StoreError
from st_paragram.tokenizers.base import KINDS, Tokenizer, load_tokenizer


class Extent(NamedTuple):
    """A contiguous array in a file: where it begins, in bytes, the type of its numbers, and how many there are."""

    position: int
    dtype: np.dtype[Any]
    length: int

    def map(self, path: Path) -> NDArray[Any]:
        """The array, mapped into memory to be read."""
        return np.memmap(path, mode="r", dtype=self.dtype, offset=self.position, shape=(self.length,))


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
        format_version: of the file.
        languages: names of side a and side b.
        pairs: rows.
        max_length: where sentences were cut, in ids, if they were.
        seed: of the shuffle.
        settings: what the preparation noted.
        tokenizers: the one that both sides share, or that of each side.
        language_pairs: the pairs of languages that rows may have.
        extents: the arrays of the file by their names in it.
    """

    format_version: int
    languages: tuple[str, str]
    pairs: int
    max_length: int | None
    seed: int
    settings: dict[str, Any]
    tokenizers: tuple[StoredTokenizer, ...]
    language_pairs: tuple[tuple[str, str], ...]
    extents: dict[str, Extent]


def read_header(path: Path) -> Header:
    """Read the head of a store.

    Raises:
        StoreError: the file is missing, no pair store, of another version, incomplete or empty, or its tokenizer is of
            an unknown kind.
    """
    if not path.is_file():
        raise StoreError(f"{path}: no such pair store; make it with `st-paragram prepare`")
    try:
        with h5py.File(path, "r") as file:
            version = _check_root(path, file)
            languages = _names(file.attrs["languages"])
            tokenizers = _tokenizers(file) if version > 1 else (_sentencepiece(file),)
            extents = _extents(file)
            header = Header(
                format_version=version,
                languages=languages,
                pairs=int(file.attrs["pairs"]),
                max_length=int(file.attrs["max_length"]) or None,
                seed=int(file.attrs["seed"]),
                settings=json.loads(file.attrs["settings"]),
                tokenizers=tokenizers,
                language_pairs=_language_pairs(file, languages),
                extents=extents,
            )
    except (OSError, KeyError, ValueError, TypeError, AttributeError) as error:
        reason = str(error).replace("\n", " ")
        raise StoreError(f"{path}: not a readable pair store ({reason}); {REMAKE}") from error
    for tokenizer in tokenizers:
        if tokenizer.kind not in KINDS:
            seen = f"its tokenizer is of the kind {tokenizer.kind!r}, this st_paragram knows {', '.join(KINDS)}"
            raise StoreError(f"{path}: {seen}; update st_paragram")
    return header


def _check_root(path: Path, file: h5py.File) -> int:
    """The version of a complete store with rows."""
    if file.attrs.get("format") != FORMAT:
        raise StoreError(f"{path}: HDF5, but not a pair store of st_paragram; {REMAKE}")
    version = int(file.attrs.get("format_version", -1))
    if version not in VERSIONS:
        known = " and ".join(map(str, VERSIONS))
        seen = f"pair store of format version {version}, this st_paragram reads versions {known}"
        raise StoreError(f"{path}: {seen}; {REMAKE}")
    if not file.attrs.get("complete", False):
        raise StoreError(f"{path}: incomplete, its preparation did not finish; {REMAKE}")
    if int(file.attrs["pairs"]) < 1:
        raise StoreError(f"{path}: holds no pairs; {REMAKE} from text with pairs in it")
    return version


def _names(names: Any) -> tuple[str, str]:  # noqa: ANN401 - whatever the file holds
    first, second = (str(name) for name in names)
    return first, second


def _sentencepiece(file: h5py.File) -> StoredTokenizer:
    """The tokenizer of version 1."""
    options = {"lower_case": bool(file.attrs["lower_case"]), "segmentation": str(file.attrs["segmentation"])}
    return StoredTokenizer("sentencepiece", file[SENTENCEPIECE_MODEL][:].tobytes(), options)


def _tokenizers(file: h5py.File) -> tuple[StoredTokenizer, ...]:
    """The tokenizers of version 2."""
    places = [file[TOKENIZER]] if TOKENIZER in file else [file[side][TOKENIZER] for side in SIDES]
    return tuple(
        StoredTokenizer(str(data.attrs["kind"]), data[:].tobytes(), dict(json.loads(data.attrs["options"])))
        for data in places
    )


def _language_pairs(file: h5py.File, languages: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    if ROW_LANGUAGES not in file:
        return (languages,)
    return tuple(_names(pair) for pair in json.loads(file[ROW_LANGUAGES].attrs["pairs"]))


def _extents(file: h5py.File) -> dict[str, Extent]:
    unsigned = [f"{side}/{name}" for side in SIDES for name in ("ids", "offsets")]
    extents = {name: _extent(file[name], "u") for name in unsigned}
    for name, kinds in ((ROW_LANGUAGES, "u"), (LABELS, "iuf")):
        if name in file:
            extents[name] = _extent(file[name], kinds)
    return extents


def _extent(data: h5py.Dataset, kinds: str) -> Extent:
    position = data.id.get_offset()
    if position is None or data.ndim != 1 or data.dtype.kind not in kinds:
        what = "unsigned integers" if kinds == "u" else "numbers"
        raise ValueError(f"{data.name} is not a contiguous list of {what}")
    return Extent(int(position), data.dtype, int(data.shape[0]))
