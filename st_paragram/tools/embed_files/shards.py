"""Shards of vectors, whatever their format: who writes and reads one, and rows across neighboring ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.packing import NumberType, Vectors
from st_paragram.tools.embed_files.npy_shards import NpyShard, ShardShape, Write, scales_file, write_npy
from st_paragram.tools.embed_files.parquet_shards import ParquetShard, write_parquet


def shard_files(path: Path, dtype: NumberType) -> list[Path]:
    """All files of a shard."""
    return [path, scales_file(path)] if (path.suffix, dtype) == (".npy", NumberType.INT8) else [path]


def shard_writer(path: Path, shape: ShardShape) -> AbstractContextManager[Write]:
    """Open a shard for writing; its files take their names when the block ends without an error.

    Args:
        path: A file that ends with `.npy` or `.parquet`.
        shape: What will be written.

    Raises:
        MissingExtraError: A Parquet table is to be written and pyarrow is not installed.
    """
    return write_npy(path, shape) if path.suffix == ".npy" else write_parquet(path, shape)


def shard_reader(path: Path, shape: ShardShape) -> NpyShard | ParquetShard:
    """Open a shard for reading.

    Args:
        path: A file that ends with `.npy` or `.parquet`.
        shape: What it must hold.

    Raises:
        OSError: It cannot be read.
        ValueError: It holds something else.
        MissingExtraError: It is a Parquet table and pyarrow is not installed.
    """
    return NpyShard(path, shape) if path.suffix == ".npy" else ParquetShard(path, shape)


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
            first = int(self.starts[shard]) + rows.start - begin
            self.fill(result[first : first + rows.stop - rows.start], shard, rows)
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
        shard = int(np.searchsorted(self.starts, begin, side="right")) - 1
        while begin < end:
            start, stop = int(self.starts[shard]), min(end, int(self.starts[shard + 1]))
            yield shard, slice(begin - start, stop - start)
            begin, shard = stop, shard + 1
