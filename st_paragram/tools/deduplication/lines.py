r"""The lines of a text, or of a parallel text, on disk: as they were read, to be written again byte by byte.

A folder holds, for each file that was read, `<number>.text`, its lines with ``\n`` after each, and `<number>.ends.npy`,
where each line ends: int64 (n + 1,), the first of which is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from st_paragram.core.text.parallel import unequal, wrong_columns
from st_paragram.core.text.streams import BYTE_ORDER_MARK, decode, read_blocks, stream_name
from st_paragram.core.text.tables import open_columns
from st_paragram.errors import TextError

MOST_LINES = (1 << 31) - 1  # rows are 32-bit numbers where there are many of them
_WRITTEN = 1 << 24  # bytes


@dataclass(frozen=True)
class Lines:
    """n rows of one or two texts, read through memory maps.

    Attributes:
        folder: Folder that `write_lines` has filled.
        files: Number of files that were read.
        columns: Texts of a row: as many as files, or two columns of one file.
    """

    folder: Path
    files: int
    columns: int

    def __len__(self) -> int:
        """Number of rows, n."""
        return len(self.ends[0]) - 1

    def __getstate__(self) -> dict[str, Any]:
        """Leave the maps behind: every process opens its own."""
        return {name: self.__dict__[name] for name in ("folder", "files", "columns")}

    @cached_property
    def ends(self) -> list[NDArray[np.int64]]:
        """Where lines end, and 0 before the first: for each file int64 (n + 1,)."""
        return [np.load(self.folder / f"{file}.ends.npy", mmap_mode="r") for file in range(self.files)]

    @cached_property
    def _text(self) -> list[mmap]:
        handles = [(self.folder / f"{file}.text").open("rb") for file in range(self.files)]
        maps = [mmap(handle.fileno(), 0, access=ACCESS_READ) for handle in handles]
        for handle in handles:
            handle.close()
        return maps

    def raw(self, row: int, file: int = 0) -> bytes:
        r"""A line as it was read, without ``\n``."""
        begin, end = self.ends[file][row : row + 2].tolist()
        return self._text[file][begin : end - 1]

    def texts(self, row: int) -> tuple[str, ...]:
        """The texts of a row, without a byte order mark at the beginning and carriage returns at the end."""
        return tuple(column[0] for column in self.block(row, row + 1))

    def block(self, begin: int, end: int) -> list[list[str]]:
        """For each column the texts of the rows `begin` to `end`, as of `texts`."""
        columns = []
        for text, ends in zip(self._text, self.ends, strict=True):
            part = text[int(ends[begin]) : int(ends[end]) - 1]
            if begin == 0:
                part = part.removeprefix(BYTE_ORDER_MARK)
            lines = part.decode().split("\n")
            columns.append([line.rstrip("\r") for line in lines] if b"\r" in part else lines)
        if self.columns == self.files:
            return columns
        pairs = [line.partition("\t") for line in columns[0]]  # no tab: a blank row
        return [[pair[0] for pair in pairs], [pair[2] for pair in pairs]]

    def write(self, kept: NDArray[np.bool_], outputs: Sequence[IO[bytes]]) -> None:
        """Write the rows that are kept, bool (n,), to one output for each file."""
        edges = np.flatnonzero(np.diff(kept, prepend=False, append=False)).reshape(-1, 2)
        for text, ends, output in zip(self._text, self.ends, outputs, strict=True):
            for begin, end in zip(ends[edges[:, 0]].tolist(), ends[edges[:, 1]].tolist(), strict=True):
                for first in range(begin, end, _WRITTEN):
                    output.write(text[first : min(first + _WRITTEN, end)])


def write_lines(paths: Sequence[str], columns: int, folder: Path, names: Sequence[str] = ()) -> Lines:
    """Read a text, or a parallel text.

    Args:
        paths: One file, or the two files of a Moses pair; plain or compressed, or `-`.
        columns: Texts of a row.
        folder: An empty folder, which is filled.
        names: Columns of a table that have the texts, see `tables.read_columns`; none for plain text.

    Raises:
        TextError: A file is missing, empty, cut off or not UTF-8, has a row without two columns, or has another number
            of lines than the other file. The message names file and row.
    """
    check = _check_pairs if columns > len(paths) else None
    counts = [_copy(path, names, folder / str(number), check) for number, path in enumerate(paths)]
    if len(set(counts)) > 1:
        raise unequal(list(map(stream_name, paths)), counts)
    return Lines(folder, len(paths), columns)


def _copy(path: str, names: Sequence[str], copy: Path, check: Callable[[str, list[str], int], None] | None) -> int:
    """Copy a file, and find where its lines end; returns how many there are."""
    name, ends, size, count = stream_name(path), [np.zeros(1, np.int64)], 0, 0
    with ExitStack() as stack:
        text = stack.enter_context(copy.with_suffix(".text").open("wb"))
        bar = stack.enter_context(tqdm(desc="read", unit="B", unit_scale=True, disable=None, leave=False))
        for block in read_blocks(name, open_columns(path, names, stack)):
            lines = decode(name, block.removeprefix(BYTE_ORDER_MARK) if count == 0 else block, count + 1).split("\n")
            if check is not None:
                check(name, lines, count + 1)
            block += b"\n"
            ends.append(np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + (size + 1))
            text.write(block)
            size, count = size + len(block), count + len(ends[-1])
            bar.update(len(block))
    if not count:
        raise TextError(f"{name}: empty; give a text with at least one {'line' if check is None else 'row'}")
    if count > MOST_LINES:
        raise TextError(f"{name}: more than {MOST_LINES:,} lines; divide the file")
    np.save(copy.with_suffix(".ends.npy"), np.concatenate(ends))
    return count


def _check_pairs(name: str, lines: Sequence[str], first: int) -> None:
    for number, line in enumerate(lines, first):
        if line.count("\t") != 1 and line.strip():
            raise TextError(wrong_columns(name, number, line.rstrip("\r")))


def rows_of(lines: Lines, size: int) -> Iterator[tuple[int, list[list[str]]]]:
    """All rows in blocks: the first row of each block, and its texts as of `Lines.block`."""
    for begin in range(0, len(lines), size):
        yield begin, lines.block(begin, min(begin + size, len(lines)))
