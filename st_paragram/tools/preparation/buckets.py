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
from types import TracebackType

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
        keyed.update(text if by is Key.PAIR else text.split(b"\t")[by is Key.SECOND])
        yield keyed.hexdigest().encode()


def keyed_again(rows: Iterable[bytes], by: Key, seed: int) -> Iterator[bytes]:
    """Rows with keys of another kind."""
    for row in rows:
        texts = b"\t".join(row[TEXTS:-1].split(b"\t", 2)[:2])
        yield next(row_keys([texts], by, seed)) + row[KEY_DIGITS:]


def texts_of(rows: Iterable[bytes]) -> list[list[str]]:
    """First and second text of rows."""
    text = b"".join([row[TEXTS:] for row in rows]).decode("utf-8")
    return [line.split("\t", 2)[:2] for line in text.split("\n")[:-1]]


def row_as_seen(row: bytes) -> bytes:
    r"""The columns that a row carries along, as a line with ``\n``."""
    return row[TEXTS:].split(b"\t", 2)[2]


def bucket_paths(folder: Path) -> list[Path]:
    """The files of a folder, in the order of their keys."""
    return [folder / f"{number:02d}" for number in range(BUCKETS)]


def read_bucket(path: Path) -> list[bytes]:
    """The rows of a file, sorted."""
    return sorted(path.read_bytes().splitlines(keepends=True))  # no row has a carriage return


class Buckets:
    """The files of a folder, open for rows to be added behind the first `sizes` bytes of each, none by default."""

    def __init__(self, folder: Path, sizes: Sequence[int] = (0,) * BUCKETS) -> None:
        """Open the files, which are made if they are not there, and cut off what is behind."""
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            self._files = [stack.enter_context(path.open("ab")) for path in bucket_paths(folder)]
            for file, size in zip(self._files, sizes, strict=True):
                file.truncate(size)
            self._stack = stack.pop_all()

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

    def __enter__(self) -> Buckets:
        """Close the files at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the files."""
        self._stack.close()
