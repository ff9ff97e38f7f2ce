r"""Rows between stages: files sorted by a random key, so that any range of keys is one slice of each file.

A row is `key TAB source TAB first text TAB second text \n`: the key 32 hexadecimal digits of BLAKE2b, keyed with the
seed, of what makes two rows equal (or as many digits of a band of near duplicates); the source a number of four digits.
Where dropped rows are to be written out, the columns of the row as the filters saw it follow the texts, separated by
tabs.

Keys look random, so their order is a uniform shuffle; it depends on the seed and on the rows alone, not on their order
in the input nor on who worked on them, and equal rows are adjacent. The index of a file, `<file>.npy`, says where
each of the 4,096 ranges of keys begins.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.files import atomic
from st_paragram.errors import StoreError, refused
from st_paragram.tools.cleaning.duplicates import Key
from st_paragram.tools.cleaning.near_duplicates import Band
from st_paragram.tools.preparation.report import PrepareReport
from st_paragram.tools.stages.stage import Stage

RANGES = 4096
MAX_SOURCES = 10_000
_PREFIX = 3  # hexadecimal digits that distinguish ranges
KEY_DIGITS = 32
SOURCE = slice(KEY_DIGITS + 1, KEY_DIGITS + 5)
TEXTS = KEY_DIGITS + 6


@dataclass(frozen=True)
class RowStage(Stage):
    """A stage whose results are files of rows; with them it may leave the rows that it dropped, in `rejects_file`s."""

    @abstractmethod
    def report(self) -> PrepareReport:
        """The numbers of this stage and of those before it; all of them are done."""


def rejects_file(result: Path) -> Path:
    """Where a task leaves the rows it dropped, as `reason TAB columns`, if they are asked for."""
    return result.with_suffix(".rejects.tsv")


@dataclass(frozen=True)
class Keys:
    """Makes the keys of rows.

    Attributes:
        by: What makes two rows equal, or may make them near.
        seed: Keys the hash, hence the order of the rows.
    """

    by: Key | Band
    seed: int

    def pack(
        self, pairs: Iterable[tuple[str, str]], source: int, as_seen: Iterable[Sequence[str]] | None = None
    ) -> list[bytes]:
        r"""Make rows of pairs.

        Args:
            pairs: Normalized texts, which hold neither ``\t`` nor ``\n``.
            source: The number of their source.
            as_seen: For each pair the columns to carry along, for the case that the row is dropped; None for none.
        """
        texts = [f"{first}\t{second}".encode("utf-8", "replace") for first, second in pairs]
        carried = [b""] * len(texts) if as_seen is None else [_tabbed(columns) for columns in as_seen]
        return self._rows(texts, carried, [b"%04d" % source] * len(texts))

    def again(self, rows: Sequence[bytes]) -> list[bytes]:
        """Give rows keys of this kind instead of those they have."""
        parts = [row[TEXTS:-1].split(b"\t", 2) for row in rows]
        texts = [b"\t".join(columns[:2]) for columns in parts]
        carried = [b"\t" + columns[2] if len(columns) > 2 else b"" for columns in parts]
        return self._rows(texts, carried, [row[SOURCE] for row in rows])

    def _rows(self, texts: Sequence[bytes], carried: Sequence[bytes], sources: Sequence[bytes]) -> list[bytes]:
        keys = self.by.keys(texts, self.seed) if isinstance(self.by, Band) else self._hashes(texts)
        parts = zip(keys, sources, texts, carried, strict=True)
        return [b"%s\t%s\t%s%s\n" % part for part in parts]

    def _hashes(self, texts: Iterable[bytes]) -> Iterator[bytes]:
        hasher = blake2b(digest_size=KEY_DIGITS // 2, key=self.seed.to_bytes(8, "little"))
        for text in texts:
            keyed = hasher.copy()
            keyed.update(text if self.by is Key.PAIR else text.split(b"\t")[self.by is Key.SECOND])
            yield keyed.hexdigest().encode()


def texts_of(rows: Iterable[bytes]) -> list[list[str]]:
    """First and second text of rows."""
    text = b"".join([row[TEXTS:] for row in rows]).decode("utf-8")
    return [line.split("\t", 2)[:2] for line in text.split("\n")[:-1]]


def row_as_seen(row: bytes) -> bytes:
    r"""The columns that a row carries along, as a line with ``\n``."""
    return row[TEXTS:].split(b"\t", 2)[2]


def write_rows(path: Path, rows: list[bytes]) -> None:
    """Sort rows and write them with their index; the index appears first."""
    rows.sort()
    prefixes = np.frombuffer(b"".join([row[:_PREFIX] for row in rows]), dtype=np.uint8).reshape(-1, _PREFIX)
    values = np.where(prefixes < ord("a"), prefixes - ord("0"), prefixes - ord("a") + 10).astype(np.int64)
    sizes = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    counts = np.bincount(values @ [256, 16, 1], minlength=RANGES)
    starts = np.concatenate([[0], np.cumsum(sizes)])[np.concatenate([[0], np.cumsum(counts)])]
    with atomic(_index(path)) as handle:
        np.save(handle, starts)
    with atomic(path) as handle:
        handle.writelines(rows)


def read_index(path: Path) -> NDArray[np.int64]:
    """Where each range of keys begins in a file of rows, in bytes: int64 (RANGES + 1,).

    Raises:
        StoreError: The index is damaged, or does not fit the file.
    """
    with refused(StoreError, path, "no file of rows", "remove its folder and start again"):
        # mapped: of many files' indexes a task needs two numbers each
        starts: NDArray[np.int64] = np.load(_index(path), mmap_mode="r")
        fits = starts.shape == (RANGES + 1,) and starts[-1] == path.stat().st_size
    if not fits:
        raise StoreError(f"{path}: does not fit its index; remove its folder and start again")
    return starts


def read_range(paths: Iterable[Path], begin: int, end: int) -> list[bytes]:
    """All rows of the ranges `begin` to `end` of several files, sorted."""
    rows: list[bytes] = []
    for path in paths:
        starts = read_index(path)
        with path.open("rb") as handle:
            handle.seek(int(starts[begin]))
            rows += handle.read(int(starts[end] - starts[begin])).splitlines(keepends=True)  # no \r is in a row
    rows.sort()
    return rows


@lru_cache(maxsize=16)
def group_ranges(paths: tuple[Path, ...], most_bytes: int) -> list[tuple[int, int]]:
    """Cut the ranges of keys into groups of neighbors of about `most_bytes` each, over all files together.

    Remembered, since every task asks; a file of rows never changes, other rows have another name.
    """
    sizes = np.zeros(RANGES, dtype=np.int64)
    for path in paths:
        sizes += np.diff(read_index(path))
    ends = np.cumsum(sizes)
    count = max(1, -(-int(ends[-1]) // most_bytes))
    cuts = np.searchsorted(ends, np.arange(1, count) * ends[-1] / count) + 1
    edges = np.unique([0, *np.minimum(cuts, RANGES), RANGES]).tolist()
    return list(pairwise(edges))


def _tabbed(columns: Sequence[str]) -> bytes:
    return "".join(f"\t{column}" for column in columns).encode("utf-8", "replace")


def _index(path: Path) -> Path:
    return path.with_name(f"{path.name}.npy")
