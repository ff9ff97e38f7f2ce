"""Shuffle rows larger than memory, and drop repeated ones, by one external sort on a keyed hash.

Every row gets a 128-bit key, BLAKE2b of its text keyed with the seed. Rows are scattered to bucket files by
the first bytes of their keys and each bucket is sorted in memory. Equal rows have equal keys, so they end up
side by side and all but one can go; otherwise the keys are random, so the order is a uniform shuffle, which
depends on the seed and on the set of rows alone, not on their order in the input nor on who worked on them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

MAX_SOURCES = 10_000
_KEY_DIGITS = 32
_DEEPEST = 6  # hexadecimal digits of the key that may tell buckets apart


@dataclass(frozen=True)
class RowFormat:
    r"""A row on disk: key (32 hexadecimal digits), two texts, number of the source, with tabs between.

    Attributes:
        seed: Keys the hash, hence the order of the rows.
    """

    seed: int

    def pack(self, pairs: Iterable[tuple[str, str]], source: int) -> list[bytes]:
        r"""Make rows of pairs; the texts hold neither ``\t`` nor ``\n``."""
        hasher = blake2b(digest_size=_KEY_DIGITS // 2, key=self.seed.to_bytes(8, "little"))
        tail = b"\t%04d\n" % source
        rows = []
        for first, second in pairs:
            text = f"{first}\t{second}".encode()
            keyed = hasher.copy()
            keyed.update(text)
            rows.append(b"%s\t%s%s" % (keyed.hexdigest().encode(), text, tail))
        return rows


@dataclass(frozen=True)
class DistinctRows:
    """Rows of a bucket in the order of their keys, each pair once.

    Attributes:
        pairs: The distinct pairs.
        kept: Source number -> pairs that stay; of equal pairs the one of the first source stays.
        duplicates: Source number -> pairs dropped because they were seen already.
    """

    pairs: list[tuple[str, str]]
    kept: Counter[int]
    duplicates: Counter[int]


def read_bucket(path: Path) -> DistinctRows:
    """Sort a bucket file and drop repeated pairs; memory grows with the number of distinct rows."""
    with path.open("rb") as handle:
        counted = Counter(handle)
    pairs: list[tuple[str, str]] = []
    kept, duplicates = Counter[int](), Counter[int]()
    previous = b""
    for row in sorted(counted):
        text, source = row[_KEY_DIGITS + 1 : -6], int(row[-5:])
        repeated = text == previous
        duplicates[source] += counted[row] - (not repeated)
        if not repeated:
            kept[source] += 1
            first, _, second = text.decode("utf-8").partition("\t")
            pairs.append((first, second))
            previous = text
    return DistinctRows(pairs, kept, duplicates)


class Scatter:
    """Scatter rows to 256 bucket files by two digits of their keys, through a buffer of bounded size."""

    def __init__(self, folder: Path, digit: int = 0, buffer_bytes: int = 1 << 25) -> None:
        """Make the folder; buckets are told apart by the digits `digit` and `digit + 1` of the key."""
        folder.mkdir()
        self.folder = folder
        self.digit = digit
        self.buffer_bytes = buffer_bytes
        self._buffer: defaultdict[bytes, list[bytes]] = defaultdict(list)
        self._buffered = 0

    def add(self, rows: list[bytes]) -> None:
        """Take rows in; a full buffer is written out."""
        buffer, start, end = self._buffer, self.digit, self.digit + 2
        for row in rows:
            buffer[row[start:end]].append(row)
        self._buffered += sum(map(len, rows))
        if self._buffered > self.buffer_bytes:
            self._flush()

    def finish(self, max_bytes: int = 1 << 26) -> list[Path]:
        """Write the buffer out; return the bucket files in key order, those above `max_bytes` split."""
        self._flush()
        return [part for path in sorted(self.folder.iterdir()) for part in self._split(path, max_bytes)]

    def _flush(self) -> None:
        for digits, rows in self._buffer.items():
            with (self.folder / digits.decode()).open("ab") as handle:
                handle.write(b"".join(rows))
        self._buffer.clear()
        self._buffered = 0

    def _split(self, path: Path, max_bytes: int) -> list[Path]:
        digit = self.digit + 2
        if path.stat().st_size <= max_bytes or digit >= _DEEPEST:
            return [path]
        finer = Scatter(path.with_suffix(".split"), digit, self.buffer_bytes)
        with path.open("rb") as handle:
            for rows in _batches(handle):
                finer.add(rows)
        path.unlink()
        return finer.finish(max_bytes)


def _batches(rows: Iterable[bytes], size: int = 10_000) -> Iterator[list[bytes]]:
    iterator = iter(rows)
    while batch := list(islice(iterator, size)):
        yield batch
