"""Read a folder of embeddings back, whatever its format and the type of its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, lru_cache
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from st_paragram.core.encoding.packing import Packed, unpack
from st_paragram.errors import DAMAGED, SettingsError, StoreError, one_line
from st_paragram.tools.embed_files.description import Description, read_description
from st_paragram.tools.embed_files.shards import ParquetShard, ShardedRows, shard_reader

_OPEN_SHARDS = 64
_BLOCK = 1 << 16  # rows


def read_embeddings(folder: str | Path) -> StoredEmbeddings:
    """Open a folder that `embed_collection` made; rows are read when they are asked for.

    Args:
        folder: The folder.

    Raises:
        StoreError: It is not such a folder, or its description is damaged.

    Example:
        >>> from st_paragram import embed_collection, read_embeddings
        >>> report = embed_collection("lines.txt", "vectors", "p-sp-mini")
        >>> read_embeddings("vectors").take([0, 5]).shape
        (2, 256)
    """
    return StoredEmbeddings(Path(folder), read_description(Path(folder)))


class StoredEmbeddings(ShardedRows):
    """The embeddings of a collection: row i is of the i-th line of all texts, one after another.

    Attributes:
        folder: Where they are.
        description: What `embeddings.json` says.
    """

    def __init__(self, folder: Path, description: Description) -> None:
        """Remember where things are; no shard is opened yet. Arguments as of `read_embeddings`."""
        self.folder, self.description = folder, description
        self._opened = lru_cache(maxsize=_OPEN_SHARDS)(self._open)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Row at which each shard begins, and the number of rows: int64 (shards + 1,)."""
        return np.cumsum([0, *(shard.rows for shard in self.description.shards)], dtype=np.int64)

    @property
    def dim(self) -> int:
        """Components of a row, D."""
        return self.description.dimension

    dimension = dim

    def rows(self, begin: int, end: int) -> NDArray[np.float32]:
        """Neighboring rows, float32 (end - begin, D); `end` beyond the last row is taken for the number of rows.

        Raises:
            IndexError: `begin` is below 0.
            StoreError: A shard is missing or damaged.
        """
        return super().rows(_first(begin), min(end, len(self)))

    def take(self, rows: ArrayLike) -> NDArray[np.float32]:
        """Rows by their numbers, in any order, float32 (len(rows), D).

        Raises:
            IndexError: There is no row of such a number.
            StoreError: A shard is missing or damaged.
        """
        wanted = np.asarray(rows, dtype=np.int64)
        if len(wanted) and not 0 <= wanted.min() <= wanted.max() < len(self):
            raise IndexError(f"rows {wanted.min()} to {wanted.max()} of {len(self)}")
        return super().take(wanted)

    def blocks(self, size: int = _BLOCK) -> Iterator[NDArray[np.float32]]:
        """Yield all rows in order, `size` at a time: float32 (size, D), the last block may be smaller."""
        for begin in range(0, len(self), size):
            yield self.rows(begin, begin + size)

    def texts(self, begin: int, end: int) -> list[str]:
        """The lines that neighboring rows are embeddings of.

        Raises:
            IndexError: `begin` is below 0.
            SettingsError: They were not kept with the embeddings.
            StoreError: A shard is missing or damaged.
        """
        if not self.description.with_text:
            raise SettingsError("these embeddings have no lines; embed with --format parquet --with-text")
        lines: list[str] = []
        for shard, rows in self.overlaps(_first(begin), min(end, len(self))):
            with self._in_one_line(shard):
                lines += cast("ParquetShard", self._opened(shard)).texts(rows)
        return lines

    def fill(self, out: NDArray[np.float32], shard: int, rows: slice | NDArray[np.int64]) -> None:
        """Read rows of a shard into an array.

        Raises:
            StoreError: The shard is missing or damaged.
        """
        with self._in_one_line(shard):
            unpack(self._opened(shard)[rows], out)

    @contextmanager
    def _in_one_line(self, shard: int) -> Iterator[None]:
        try:
            yield
        except DAMAGED as error:
            path = self.folder / self.description.shards[shard].file
            raise StoreError(f"{path}: missing or damaged ({one_line(error)}); make the embeddings again") from error

    def _open(self, shard: int) -> Packed | ParquetShard:
        described = self.description.shards[shard]
        return shard_reader(self.folder / described.file, self.description.shape(described))


def _first(row: int) -> int:
    if row < 0:
        raise IndexError(f"rows from {row}; the first one is 0")
    return row
