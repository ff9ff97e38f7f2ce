"""Arrays of a file, mapped into memory."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.data.pair_store.format import CHUNK
from st_paragram.errors import StoreError


class Extent(NamedTuple):
    """A contiguous array in a file: where it begins, in bytes, the type of its numbers, and how many there are."""

    position: int
    dtype: np.dtype[Any]
    length: int

    @property
    def end(self) -> int:
        """The byte behind it."""
        return self.position + self.dtype.itemsize * self.length


class MappedFile:
    """The arrays of a file by their names.

    To read a map of a file that has been cut short kills the process (SIGBUS), so the size of the file is looked at
    whenever an array is asked for. What is cut between that look and the reading cannot be told.
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
            raise StoreError(f"{self._path}: {seen}; leave a store alone while it is read, and start again")

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
