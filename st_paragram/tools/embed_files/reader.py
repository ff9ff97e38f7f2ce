"""Folders of embeddings: the content of `embeddings.json`, and the rows of the shards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from st_paragram.core.arrays import Vectors
from st_paragram.core.files import content_digest, read_record
from st_paragram.errors import StoreError, refused

#: The file in every folder of embeddings; it is written last.
MANIFEST = "embeddings.json"
_AGAIN = "compute the embeddings again"


@dataclass(frozen=True)
class EmbeddedText:
    """A text by its path, with the numbers of lines and blank lines."""

    path: str
    lines: int
    blank: int


@dataclass(frozen=True)
class Shard:
    """A matrix file and its number of rows."""

    file: str
    rows: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The content of `embeddings.json`."""

    format_version: Literal[1]
    rows: int
    dimension: int
    dtype: Literal["float32", "float16"]
    normalized: bool
    model: str | None  # name or path; None for a model that was in memory
    fingerprint: str
    texts: tuple[EmbeddedText, ...]
    shards: tuple[Shard, ...]


def read_manifest(folder: Path) -> Manifest:
    """Read `embeddings.json`."""
    path = folder / MANIFEST
    if not path.is_file():
        raise StoreError(f"{folder}: no {MANIFEST}; give a folder made by st-paragram embed")
    with refused(StoreError, path, "damaged, or of another version of st_paragram", _AGAIN):
        return read_record(path, Manifest)


def read_embeddings(folder: str | Path) -> StoredEmbeddings:
    """Open a folder made by `embed_files`; rows are read on demand.

    Examples:
        >>> from st_paragram import embed_files, read_embeddings
        >>> report = embed_files("p-sp-mini", ["wiki.en", "wiki.es"], "vectors")
        >>> read_embeddings("vectors").take([0, 5]).shape
        (2, 256)
    """
    return StoredEmbeddings(Path(folder))


class StoredEmbeddings:
    """The embeddings of some texts: row i belongs to line i of the concatenated texts.

    Attributes:
        manifest: The content of `embeddings.json`.
        dimension: Dimensions of a row, D.
    """

    def __init__(self, folder: Path) -> None:
        """Read the manifest; shards are mapped when they are needed."""
        self.manifest: Manifest = read_manifest(folder)
        self.dimension: int = self.manifest.dimension
        self._folder = folder
        self._shard = lru_cache(maxsize=64)(self._map)
        counts = [shard.rows for shard in self.manifest.shards]
        self._starts = np.cumsum([0, *counts])

    def __len__(self) -> int:
        """Number of rows."""
        return int(self._starts[-1])

    def rows(self, begin: int, end: int) -> Vectors:
        """Read consecutive rows, float32 (end - begin, D); `end` may be beyond the last row."""
        return self.take(np.arange(begin, min(end, len(self))))

    def take(self, rows: ArrayLike) -> Vectors:
        """Read rows by number, in any order, float32 (len(rows), D)."""
        wanted = np.asarray(rows, dtype=np.int64)
        if len(wanted) and not 0 <= wanted.min() <= wanted.max() < len(self):
            raise IndexError(f"rows {wanted.min()} to {wanted.max()} of {len(self)}")
        result = np.empty((len(wanted), self.dimension), np.float32)
        numbers = np.searchsorted(self._starts, wanted, side="right") - 1
        for number in np.unique(numbers):
            places = numbers == number
            shard = self._shard(int(number))
            result[places] = shard[wanted[places] - self._starts[number]]
        return result

    def blocks(self, size: int = 1 << 16) -> Iterator[Vectors]:
        """Yield all rows in order, float32 (size, D); the last block may be smaller."""
        for begin in range(0, len(self), size):
            yield self.rows(begin, begin + size)

    def _map(self, number: int) -> NDArray[np.floating]:
        shard = self.manifest.shards[number]
        path = self._folder / shard.file
        shape = (shard.rows, self.dimension)
        with refused(StoreError, path, "missing or damaged", _AGAIN):
            rows: NDArray[np.floating] = np.load(path, mmap_mode="r")
            if rows.dtype != self.manifest.dtype or rows.shape != shape:
                raise ValueError(f"{rows.dtype} of shape {rows.shape}")
        return rows


def describe_embeddings(folder: Path) -> dict[str, Any]:
    """Describe a folder of embeddings; no shard is read."""
    return {"name": folder.resolve().name, **asdict(read_manifest(folder))}


def check_embeddings(folder: Path) -> str:
    """Compare the content of all shards with the manifest; return the result in words."""
    manifest = read_manifest(folder)
    for shard in manifest.shards:
        with refused(StoreError, folder / shard.file, "missing or damaged", _AGAIN):
            if content_digest(folder / shard.file) != shard.sha256:
                raise ValueError("its SHA-256 differs from the recorded SHA-256")
    return f"{manifest.rows:,} embeddings, all shards match their checksums"
