"""Where the lines of a file are: spans of neighboring lines, which are found in one pass and read on their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np

from st_paragram.core.text.streams import BYTE_ORDER_MARK, ByteStream, decode, read_blocks
from st_paragram.errors import TextError


@dataclass(frozen=True)
class Span:
    """Neighboring lines of a file.

    Attributes:
        begin: The byte at which the first line begins.
        end: The byte behind the last line and its line feed; a file that ends without one has a byte less.
        first: The number of the first line, from 1.
        lines: How many lines there are, at least 1.
    """

    begin: int
    end: int
    first: int
    lines: int


@dataclass(frozen=True)
class _Piece:
    """Whole lines without the last line feed; `last` says whether the next piece begins another span."""

    data: bytes
    lines: int
    last: bool


def find_spans(
    name: str, blocks: Iterable[bytes], most: int, copy: Callable[[int], AbstractContextManager[IO[bytes] | None]]
) -> Iterator[Span]:
    """Cut a text into spans of `most` lines, of which the last one may have fewer.

    Args:
        name: What to call the text in errors.
        blocks: As `read_blocks` gives them.
        most: Lines of a span.
        copy: Opens a file for the lines of a span of this number; their bytes are then counted from its beginning. None
            in its place: nothing is copied, and bytes are counted from the beginning of the text.

    Raises:
        TextError: A line is not UTF-8.
    """
    mark, first, number, position = _Mark(), 1, 0, 0
    pieces = _pieces(name, mark.taken_off(blocks), most)
    for piece in pieces:
        position = position or mark.size  # known when there is a first piece
        lines = size = 0
        with copy(number) as file:
            for part in chain([piece], pieces):
                if file:
                    file.write(part.data + b"\n")
                lines += part.lines
                size += len(part.data) + 1
                if part.last:
                    break
        start = 0 if file else position
        yield Span(start, start + size, first, lines)
        position, first, number = position + size, first + lines, number + 1


class _Mark:
    """A byte order mark at the beginning of a text; its size is known when the first block was taken."""

    def __init__(self) -> None:
        self.size = 0

    def taken_off(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        for number, block in enumerate(blocks):
            if number == 0 and block.startswith(BYTE_ORDER_MARK):
                self.size = len(BYTE_ORDER_MARK)
                block = block[self.size :]
            yield block


def _pieces(name: str, blocks: Iterable[bytes], most: int) -> Iterator[_Piece]:
    left, first = most, 1
    for block in blocks:
        decode(name, block, first)
        lines = block.count(b"\n") + 1
        first += lines
        while lines >= left:
            end = len(block) if lines == left else _line_feed(block, left)
            yield _Piece(block[:end], left, True)
            block, lines, left = block[end + 1 :], lines - left, most
        if lines:
            yield _Piece(block, lines, False)
            left -= lines


def _line_feed(block: bytes, number: int) -> int:
    """Position of the line feed with this number, counted from 1."""
    return int(np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))[number - 1])


def read_span(path: Path, span: Span, name: str) -> Iterator[str]:
    r"""Yield the lines of a span, without carriage returns at their ends.

    Args:
        path: The plain file that the span was found in, or its copy.
        span: What to read.
        name: What to call the text in errors.

    Raises:
        TextError: The file is not what it was when the span was found.
    """
    found = 0
    try:
        with path.open("rb") as file:
            file.seek(span.begin)
            for block in read_blocks(name, _Part(file, span.end - span.begin)):
                lines = block.decode("utf-8").split("\n")
                found += len(lines)
                yield from (line.rstrip("\r") for line in lines) if b"\r" in block else lines
    except (FileNotFoundError, UnicodeDecodeError) as error:
        raise changed(name) from error
    if not found and span.end - span.begin == span.lines == 1:
        yield ""  # a text of a byte order mark alone has one line
    elif found != span.lines:
        raise changed(name)


def changed(name: str) -> TextError:
    """The error for a text that changed while it was read."""
    return TextError(f"{name}: the file changed while it was being read; start again when no one is writing to it")


class _Part:
    """The next bytes of a file, as a stream that ends behind them."""

    def __init__(self, file: ByteStream, size: int) -> None:
        self._file, self._left = file, size

    def read(self, size: int, /) -> bytes:
        data = self._file.read(min(size, self._left))
        self._left -= len(data)
        return data
