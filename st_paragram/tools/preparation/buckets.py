r"""Rows in 64 files by a keyed hash, which brings equal rows together and shuffles all of them.

A row is `key TAB source TAB first text TAB second text \n`: the key 32 hexadecimal digits of BLAKE2b, keyed with the
seed, of what makes two rows equal; the source four digits. Where rows are to be shown as the filters saw them, all
their columns follow the texts, separated by tabs.

Keys look random, so their order is a uniform shuffle; it depends on the seed and on the rows alone, not on their order
in the input nor on who worked on them. A file has the rows of a range of keys, so that files sorted one by one, each in
memory, are sorted altogether.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path

from st_paragram.tools.cleaning.config import Key

BUCKETS = 64
KEY_DIGITS = 32
SOURCE = slice(KEY_DIGITS + 1, KEY_DIGITS + 5)
TEXTS = KEY_DIGITS + 6


def row_keys(texts: Iterable[bytes], by: Key, seed: int) -> Iterator[bytes]:
    """The keys of rows, given their two texts with a tab between."""
    hasher = blake2b(digest_size=KEY_DIGITS // 2, key=seed.to_bytes(8, "little"))
    for text in texts:
        keyed = hasher.copy()
        keyed.update(text if by == "pair" else text.split(b"\t")[by == "second"])
        yield keyed.hexdigest().encode()


def keyed_again(rows: Sequence[bytes], by: Key, seed: int) -> Iterator[bytes]:
    """Rows with keys of another kind."""
    texts = (b"\t".join(row[TEXTS:-1].split(b"\t", 2)[:2]) for row in rows)
    return (key + row[KEY_DIGITS:] for key, row in zip(row_keys(texts, by, seed), rows, strict=True))


def texts_of(rows: Iterable[bytes]) -> list[list[str]]:
    """First and second text of rows."""
    text = b"".join([row[TEXTS:] for row in rows]).decode("utf-8")
    return [line.split("\t", 2)[:2] for line in text.split("\n")[:-1]]


def row_as_seen(row: bytes) -> bytes:
    r"""The columns that a row carries along, as a line with ``\n``."""
    return row[TEXTS:].split(b"\t", 2)[2]


def read_buckets(folder: Path) -> Iterator[list[bytes]]:
    """The rows of each file, sorted, in the order of the keys."""
    for number in range(BUCKETS):
        yield sorted((folder / f"{number:02d}").read_bytes().splitlines(keepends=True))  # no row has a carriage return


class Buckets(ExitStack):
    """The files of a folder, open for rows to be added behind the first `sizes` bytes of each, none by default."""

    def __init__(self, folder: Path, sizes: Sequence[int] = (0,) * BUCKETS) -> None:
        """Open the files, which are made if they are not there, and cut off what is behind."""
        super().__init__()
        folder.mkdir(parents=True, exist_ok=True)
        self._files = [self.enter_context((folder / f"{number:02d}").open("ab")) for number in range(BUCKETS)]
        for file, size in zip(self._files, sizes, strict=True):
            file.truncate(size)

    def add(self, rows: Iterable[bytes]) -> None:
        """Append each row to the file of its key."""
        files = self._files
        for row in rows:
            files[int(row[:2], 16) * BUCKETS >> 8].write(row)

    def sizes(self) -> list[int]:
        """Bytes of all files, which are written out."""
        for file in self._files:
            file.flush()
        return [file.tell() for file in self._files]
