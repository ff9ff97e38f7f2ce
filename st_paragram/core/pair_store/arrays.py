"""The arrays of a pair store, mapped into memory: their digest, and whether every number is in its range."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from st_paragram.core.pair_store.format import CHUNK, LABELS, REMAKE, ROW_LANGUAGES, SIDES, ArrayDigest
from st_paragram.core.pair_store.hdf5 import Extent
from st_paragram.core.pair_store.header import Header
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import StoreError


class MappedFile:
    """The arrays of a file by their names.

    To read a map of a file that has been cut short kills the process (SIGBUS), so the size of the file is looked at
    whenever an array is asked for. What is truncated between that check and the reading goes unnoticed.
    """

    def __init__(self, path: Path, extents: Mapping[str, Extent], size: int) -> None:
        """Map the arrays of a file.

        Args:
            path: the file.
            extents: its arrays, none of which is empty or ends beyond the file.
            size: of the file, in bytes, when the extents were found.

        Raises:
            StoreError: the file is gone, or has another size now.
        """
        self._path, self._size = path, size
        try:
            with path.open("rb") as file:
                self._watch = mmap.mmap(file.fileno(), 1, access=mmap.ACCESS_READ)
                self.check()
                self._arrays = {
                    name: np.memmap(file, mode="r", dtype=extent.dtype, offset=extent.position, shape=(extent.length,))
                    for name, extent in extents.items()
                }
        except (OSError, ValueError) as error:  # ValueError: there is nothing left to map
            raise StoreError(f"{path}: cannot be mapped into memory ({error}); check the file") from error

    def check(self) -> None:
        """Look whether the file still is as long as it was.

        Raises:
            StoreError: it is not.
        """
        if (size := self._watch.size()) != self._size:
            seen = f"changed while in use, from {self._size:,} bytes to {size:,}"
            raise StoreError(f"{self._path}: {seen}; do not change a store while it is read, and start again")

    def __getitem__(self, name: str) -> NDArray[Any]:
        """An array, to be read at once.

        Raises:
            StoreError: the file has changed.
        """
        self.check()
        return self._arrays[name]

    def chunks(self, name: str) -> Iterator[tuple[int, NDArray[Any]]]:
        """Where each piece of an array begins, and the piece; errors as in `__getitem__`."""
        for start in range(0, len(self[name]), CHUNK):
            yield start, self[name][start : start + CHUNK]


def digest_of(path: Path, header: Header, maps: MappedFile) -> str:
    """Read a store, and make the digest of what it holds.

    Raises:
        StoreError: the file changed meanwhile.
    """
    arrays = {name: ArrayDigest(extent.dtype) for name, extent in header.extents.items()}
    size = sum(extent.end - extent.position for extent in header.extents.values())
    with tqdm(total=size, desc=f"checking {path.name}", unit="B", unit_scale=True, delay=1, disable=None) as bar:
        for name, array in arrays.items():
            for _, piece in maps.chunks(name):
                array.add(piece)
                bar.update(piece.nbytes)
    return header.digest_with(arrays)


def check_rows(path: Path, header: Header, maps: MappedFile, tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
    """Look through all arrays once.

    Raises:
        StoreError: offsets do not grow, or an id, a row's languages or a label is out of its range; the message names
            side and row. Or the file changed meanwhile.
    """
    for side, tokenizer in zip(SIDES, tokenizers, strict=True):
        _check_offsets(f"{path}: side {side}", side, maps)
        _check_ids(f"{path}: side {side}", side, maps, len(tokenizer))
    known = len(header.language_pairs)
    for start, chunk in maps.chunks(ROW_LANGUAGES) if ROW_LANGUAGES in header.extents else ():
        check_languages(str(path), chunk, known, start)
    for start, chunk in maps.chunks(LABELS) if LABELS in header.extents else ():
        if not (finite := np.isfinite(chunk)).all():
            row = int(np.argmin(finite))
            raise StoreError(f"{path}: row {start + row}: the label {chunk[row]} is not a finite number; {REMAKE}")


def check_languages(where: str, numbers: NDArray[Any], known: int, first_row: int = 0) -> None:
    """Look through numbers of pairs of languages.

    Raises:
        StoreError: one is not below `known`.
    """
    if (wrong := numbers >= known).any():
        row = int(np.argmax(wrong))
        seen = f"unknown language pair {numbers[row]}; there are {known}, counted from 0"
        raise StoreError(f"{where}: row {first_row + row}: {seen}; {REMAKE}")


def _check_offsets(where: str, side: str, maps: MappedFile) -> None:
    offsets, ids = maps[f"{side}/offsets"], len(maps[f"{side}/ids"])
    if offsets[0] != 0 or offsets[-1] != ids:
        raise StoreError(f"{where}: offsets run {offsets[0]}..{offsets[-1]} over {ids} ids; {REMAKE}")
    for start in range(0, len(offsets) - 1, CHUNK):
        piece = maps[f"{side}/offsets"][start : start + CHUNK + 1]
        if (piece[1:] <= piece[:-1]).any():
            row = start + int(np.argmax(piece[1:] <= piece[:-1]))
            raise StoreError(f"{where}, row {row}: offsets do not increase; {REMAKE}")


def _check_ids(where: str, side: str, maps: MappedFile, most: int) -> None:
    for start, chunk in maps.chunks(f"{side}/ids"):
        if chunk.max() >= most:
            bad = start + int(np.argmax(chunk >= most))
            row = int(np.searchsorted(maps[f"{side}/offsets"], bad, side="right")) - 1
            seen = f"id {chunk[bad - start]} is outside the vocabulary of {most}"
            raise StoreError(f"{where}, row {row}: {seen}; {REMAKE}")
