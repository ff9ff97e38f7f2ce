"""Read a folder of embeddings back, whatever its format and the type of its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from st_paragram.core.damage import DAMAGED, one_line
from st_paragram.errors import StoreError
from st_paragram.tools.embed_files.description import Description, read_description
from st_paragram.tools.embed_files.number_types import unpack
from st_paragram.tools.embed_files.shard_files import ShardReader
from st_paragram.tools.embed_files.shard_formats import shard_reader

_OPEN_SHARDS = 64
_BLOCK = 1 << 16  # rows


def read_embeddings(folder: str | Path) -> StoredEmbeddings:
    """Open a folder that `embed_collection` made; rows are read when they are asked for.

    Raises:
        StoreError: It is no such folder, or its description is damaged.
    """
    return StoredEmbeddings(Path(folder), read_description(Path(folder)))


class StoredEmbeddings:
    """The embeddings of a collection: row i is of the i-th line of all texts, one after another.

    Attributes:
        folder: Where they are.
        description: What `embeddings.json` says.
    """

    def __init__(self, folder: Path, description: Description) -> None:
        """Remember where things are; no shard is opened yet."""
        self.folder, self.description = folder, description
        sizes = [shard.rows for shard in description.shards]
        self._starts = np.cumsum([0, *sizes], dtype=np.int64)
        self._opened = lru_cache(maxsize=_OPEN_SHARDS)(self._open)

    def __len__(self) -> int:
        """Number of rows."""
        return self.description.rows

    @property
    def dimension(self) -> int:
        """Components of a row, D."""
        return self.description.dimension

    def rows(self, begin: int, end: int) -> NDArray[np.float32]:
        """Neighbouring rows, float32 (end - begin, D); `end` beyond the last row is taken for the number of rows.

        Raises:
            StoreError: A shard is missing or damaged.
        """
        end = min(end, len(self))
        result = np.empty((max(0, end - begin), self.dimension), np.float32)
        filled = 0
        for shard, rows in self._overlaps(begin, end):
            part = self._take(shard, rows)
            result[filled : filled + len(part)] = part
            filled += len(part)
        return result

    def take(self, rows: ArrayLike) -> NDArray[np.float32]:
        """Rows by their numbers, in any order, float32 (len(rows), D).

        Raises:
            IndexError: There is no row of such a number.
            StoreError: A shard is missing or damaged.
        """
        wanted = np.asarray(rows, dtype=np.int64)
        if len(wanted) and not 0 <= wanted.min() <= wanted.max() < len(self):
            raise IndexError(f"rows {wanted.min()} to {wanted.max()} of {len(self)}")
        result = np.empty((len(wanted), self.dimension), np.float32)
        shards = np.searchsorted(self._starts, wanted, side="right") - 1
        for shard in np.unique(shards):
            places = np.flatnonzero(shards == shard)
            result[places] = self._take(int(shard), wanted[places] - self._starts[shard])
        return result

    def blocks(self, size: int = _BLOCK) -> Iterator[NDArray[np.float32]]:
        """Yield all rows in order, `size` at a time: float32 (size, D), the last block may be smaller."""
        for begin in range(0, len(self), size):
            yield self.rows(begin, begin + size)

    def texts(self, begin: int, end: int) -> list[str]:
        """The lines that neighbouring rows are embeddings of.

        Raises:
            SettingsError: They were not kept beside the embeddings.
            StoreError: A shard is missing or damaged.
        """
        lines: list[str] = []
        for shard, rows in self._overlaps(begin, min(end, len(self))):
            try:
                lines += self._opened(shard).texts(rows)
            except DAMAGED as error:
                raise self._damaged(shard, error) from error
        return lines

    def _overlaps(self, begin: int, end: int) -> Iterator[tuple[int, slice]]:
        """The numbers of the shards that have some of these rows, and the rows within each."""
        if begin < 0:
            raise IndexError(f"rows from {begin}; the first one is 0")
        shard = int(np.searchsorted(self._starts, begin, side="right")) - 1
        while begin < end:
            start, stop = int(self._starts[shard]), min(end, int(self._starts[shard + 1]))
            yield shard, slice(begin - start, stop - start)
            begin, shard = stop, shard + 1

    def _take(self, shard: int, rows: slice | NDArray[np.int64]) -> NDArray[np.float32]:
        try:
            return unpack(self._opened(shard).take(rows))
        except DAMAGED as error:
            raise self._damaged(shard, error) from error

    def _damaged(self, shard: int, error: BaseException) -> StoreError:
        path = self.folder / self.description.shards[shard].file
        return StoreError(f"{path}: missing or damaged ({one_line(error)}); make the embeddings again")

    def _open(self, shard: int) -> ShardReader:
        described = self.description.shards[shard]
        return shard_reader(self.folder / described.file, self.description.shape(described))
