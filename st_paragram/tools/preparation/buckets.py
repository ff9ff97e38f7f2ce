r"""Rows in 64 files by a keyed hash, which brings equal rows together and shuffles all rows.

A row is `key TAB source TAB first text TAB second text \n`; only this module packs and reads it.
The key is a BLAKE2b hash, keyed with the seed, of the texts that make two rows equal, in 32
hexadecimal digits; the source has four digits. If rows must be shown as the filters saw them, all
their columns follow the texts, separated by tabs.

Keys look random, so their order is a uniform shuffle. It depends only on the seed and the rows, not
on their order in the input or on the number of workers. A file has the rows in a range of keys, so
sorting the files one by one, in memory, sorts all rows. A file too large for this is first divided
into 64 smaller ranges, in a temporary folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path

from st_paragram.core.folders import temporary_folder
from st_paragram.tools.cleaning.config import Key

BUCKETS = 64
_BITS = 6  # of a key that choose one of 64 files
_KEY_BITS = 24
_KEY_DIGITS_READ = _KEY_BITS // 4
_MOST_DEPTH = _KEY_BITS // _BITS
_MOST_BYTES = 64 << 20  # of a file that is sorted at once
KEY_DIGITS = 32
_SOURCE = slice(KEY_DIGITS + 1, KEY_DIGITS + 5)
_TEXTS = KEY_DIGITS + 6


def pack_rows(
    pairs: Sequence[tuple[str, str]],
    source: int,
    by: Key,
    seed: int,
    columns: Sequence[Sequence[str]] | None = None,
) -> list[bytes]:
    """Pack pairs of normalized texts of a source, with their original columns if given."""
    hashed = _hasher(by, seed)
    number = b"\t%04d\t" % source
    rows = []
    for place, (first, second) in enumerate(pairs):
        texts = f"{first}\t{second}".encode("utf-8", "replace")
        row = hashed(texts) + number + texts
        if columns is not None:
            row += b"\t" + "\t".join(columns[place]).encode("utf-8", "replace")
        rows.append(row + b"\n")
    return rows


def _hasher(by: Key, seed: int) -> Callable[[bytes], bytes]:
    """Return a function that hashes the two texts of a row, joined by a tab."""
    empty = blake2b(digest_size=KEY_DIGITS // 2, key=seed.to_bytes(8, "little"))

    def hashed(texts: bytes) -> bytes:
        if by != "pair":
            first, _, second = texts.partition(b"\t")
            texts = first if by == "first" else second
        hasher = empty.copy()
        hasher.update(texts)
        return hasher.hexdigest().encode()

    return hashed


def rehashed(rows: Sequence[bytes], by: Key, seed: int) -> Iterator[bytes]:
    """Replace the keys of rows by keys of another kind."""
    hashed = _hasher(by, seed)
    for row in rows:
        first, second = row[_TEXTS:-1].split(b"\t", 2)[:2]
        yield with_key(row, hashed(first + b"\t" + second))


def key_of(row: bytes) -> bytes:
    """Return the key of a row."""
    return row[:KEY_DIGITS]


def with_key(row: bytes, key: bytes) -> bytes:
    """Return a row with another key."""
    return key + row[KEY_DIGITS:]


def source_of(row: bytes) -> int:
    """Return the number of the text that a row is from."""
    return int(row[_SOURCE])


def sources_of(rows: Iterable[bytes]) -> list[int]:
    """Return the numbers of the texts that rows are from."""
    return [source_of(row) for row in rows]


def texts_of(rows: Iterable[bytes]) -> list[list[str]]:
    """Return the first and second texts of rows."""
    text = b"".join([row[_TEXTS:] for row in rows]).decode("utf-8")
    return [line.split("\t", 2)[:2] for line in text.split("\n")[:-1]]


def columns_of(row: bytes) -> bytes:
    r"""Return the original columns of a row, separated by tabs and followed by ``\n``."""
    return row[_TEXTS:].split(b"\t", 2)[2]


def read_buckets(folder: Path) -> Iterator[list[bytes]]:
    """Yield sorted rows, in the order of the keys; equal rows are together."""
    for number in range(BUCKETS):
        yield from _sorted_parts(_file(folder, number), depth=1)


def _sorted_parts(path: Path, depth: int) -> Iterator[list[bytes]]:
    """Yield the sorted rows of a file, in parts that fit into memory."""
    if path.stat().st_size <= _MOST_BYTES or depth == _MOST_DEPTH:
        # no row has a carriage return
        yield sorted(path.read_bytes().splitlines(keepends=True))
        return
    with temporary_folder(path) as folder:
        with Buckets(folder, depth=depth) as buckets, path.open("rb") as file:
            buckets.add(file)
        for number in range(BUCKETS):
            part = _file(folder, number)
            yield from _sorted_parts(part, depth + 1)
            part.unlink()


def _file(folder: Path, number: int) -> Path:
    return folder / f"{number:02d}"


class Buckets(ExitStack):
    """The files of a folder, open for appending rows."""

    def __init__(self, folder: Path, sizes: Sequence[int] = (0,) * BUCKETS, depth: int = 0) -> None:
        """Open the files, creating missing files, and truncate them to their sizes in bytes.

        `depth` is the number of times that the rows were divided before.
        """
        super().__init__()
        self._shift = _KEY_BITS - (depth + 1) * _BITS
        folder.mkdir(parents=True, exist_ok=True)
        self._files = []
        for number, size in enumerate(sizes):
            file = self.enter_context(_file(folder, number).open("ab"))
            file.truncate(size)
            self._files.append(file)

    def add(self, rows: Iterable[bytes]) -> None:
        """Append each row to the file of its key."""
        files = self._files
        shift = self._shift
        for row in rows:
            files[int(row[:_KEY_DIGITS_READ], 16) >> shift & (BUCKETS - 1)].write(row)

    def sizes(self) -> list[int]:
        """Flush all files, and return their sizes in bytes."""
        for file in self._files:
            file.flush()
        return [file.tell() for file in self._files]
