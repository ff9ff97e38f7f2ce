"""Matrices on disk and rows across them, for the stages of mining and for index folders."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from st_paragram.core.encoding.packing import Vectors
from st_paragram.core.files import atomic


def write_header(file: IO[bytes], dtype: str, shape: tuple[int, ...]) -> None:
    """Write the header of a `.npy` file; numpy pads it so that it keeps its size while the number of rows grows."""
    npy.write_array_header_1_0(file, {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape})


@contextmanager
def write_array(path: Path, dtype: str, shape: tuple[int, ...]) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Open a `.npy` file to be written part by part; it takes its name when the block ends without an error."""
    with atomic(path) as file:
        write_header(file, dtype, shape)

        def write(numbers: NDArray[Any]) -> None:
            file.write(np.ascontiguousarray(numbers).data)

        yield write


def map_array(path: Path, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Map a `.npy` file of one type and shape; OSError or ValueError where it is another, or none."""
    found = npy.open_memmap(path, mode="r")
    if (found.dtype, found.shape) != (np.dtype(dtype), shape):
        raise ValueError(f"{found.dtype} of shape {found.shape} where {dtype} of shape {shape} is expected")
    return found


class ShardedRows(ABC):
    """The rows of shards that follow one another."""

    @property
    @abstractmethod
    def starts(self) -> NDArray[np.int64]:
        """Row at which each shard begins, and the number of rows: int64 (shards + 1,)."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Components of a row, D."""

    @abstractmethod
    def fill(self, out: Vectors, shard: int, rows: slice | NDArray[np.int64]) -> None:
        """Put rows of a shard, counted from its first one, into an array float32 (rows, D)."""

    def __len__(self) -> int:
        """Number of rows, n."""
        return int(self.starts[-1])

    def rows(self, begin: int, end: int) -> Vectors:
        """The rows `begin` to `end`, which is at most n: float32 (end - begin, D)."""
        result = np.empty((max(0, end - begin), self.dim), np.float32)
        for shard, rows in self.overlaps(begin, end):
            first = int(self.starts[shard]) - begin
            self.fill(result[first + rows.start : first + rows.stop], shard, rows)
        return result

    def take(self, rows: NDArray[np.int64]) -> Vectors:
        """Rows by their numbers from 0 to n - 1, in any order: float32 (len(rows), D)."""
        result = np.empty((len(rows), self.dim), np.float32)
        shards = np.searchsorted(self.starts, rows, side="right") - 1
        for shard in np.unique(shards):
            places = np.flatnonzero(shards == shard)
            part = np.empty((len(places), self.dim), np.float32)
            self.fill(part, int(shard), rows[places] - self.starts[shard])
            result[places] = part
        return result

    def overlaps(self, begin: int, end: int) -> Iterator[tuple[int, slice]]:
        """The numbers of the shards that have some of the rows `begin` to `end`, and the rows within each."""
        for shard, (start, stop) in enumerate(pairwise(self.starts.tolist())):
            if max(begin, start) < min(end, stop):
                yield shard, slice(max(begin, start) - start, min(end, stop) - start)
