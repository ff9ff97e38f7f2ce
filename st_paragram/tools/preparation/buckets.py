r"""Rows in 64 files by a keyed hash, which brings equal rows together and shuffles all rows.

A row is `key TAB source TAB first text TAB second text \n`. The key is a BLAKE2b hash, keyed with
the seed, of the texts that make two rows equal, in 32 hexadecimal digits; the source has four
digits. If rows must be shown as the filters saw them, all their columns follow the texts, separated
by tabs.

Keys look random, so their order is a uniform shuffle. It depends only on the seed and the rows, not
on their order in the input or on the number of workers. A file has the rows in a range of keys, so
sorting the files one by one, in memory, sorts all rows.
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
    """Return the keys of rows, given their two texts joined by a tab."""
    hasher = blake2b(digest_size=KEY_DIGITS // 2, key=seed.to_bytes(8, "little"))
    for text in texts:
        keyed = hasher.copy()
        keyed.update(text if by == "pair" else text.split(b"\t")[by == "second"])
        yield keyed.hexdigest().encode()


def keyed_again(rows: Sequence[bytes], by: Key, seed: int) -> Iterator[bytes]:
    """Replace the keys of rows by keys of another kind."""
    texts = (b"\t".join(row[TEXTS:-1].split(b"\t", 2)[:2]) for row in rows)
    return (
        key + row[KEY_DIGITS:] for key, row in zip(row_keys(texts, by, seed), rows, strict=True)
    )


def texts_of(rows: Iterable[bytes]) -> list[list[str]]:
    """Return the first and second texts of rows."""
    text = b"".join([row[TEXTS:] for row in rows]).decode("utf-8")
    return [line.split("\t", 2)[:2] for line in text.split("\n")[:-1]]


def row_as_seen(row: bytes) -> bytes:
    r"""Return the additional columns of a row, as a line with ``\n``."""
    return row[TEXTS:].split(b"\t", 2)[2]


def read_buckets(folder: Path) -> Iterator[list[bytes]]:
    """Yield the sorted rows of each file, in the order of the keys."""
    for number in range(BUCKETS):
        # no row has a carriage return
        yield sorted((folder / f"{number:02d}").read_bytes().splitlines(keepends=True))


class Buckets(ExitStack):
    """The files of a folder, open for appending rows after the first `sizes` bytes of each, by
    default 0.
    """

    def __init__(self, folder: Path, sizes: Sequence[int] = (0,) * BUCKETS) -> None:
        """Open the files, creating missing files, and truncate them to their sizes."""
        super().__init__()
        folder.mkdir(parents=True, exist_ok=True)
        self._files = [
            self.enter_context((folder / f"{number:02d}").open("ab")) for number in range(BUCKETS)
        ]
        for file, size in zip(self._files, sizes, strict=True):
            file.truncate(size)

    def add(self, rows: Iterable[bytes]) -> None:
        """Append each row to the file of its key."""
        files = self._files
        for row in rows:
            files[int(row[:2], 16) * BUCKETS >> 8].write(row)

    def sizes(self) -> list[int]:
        """Flush all files, and return their sizes in bytes."""
        for file in self._files:
            file.flush()
        return [file.tell() for file in self._files]
