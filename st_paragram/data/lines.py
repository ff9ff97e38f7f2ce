"""The lines of a text, whatever it is packed in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from st_paragram.data.streams import open_stream, read_blocks
from st_paragram.errors import TextError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_lines(path: str) -> Iterator[str]:
    r"""Yield the lines of a plain, gzip, xz or bzip2 file (`-`: standard input), split at `\n` alone.

    A byte order mark, and carriage returns at the ends of lines, are removed. Every line counts: none is skipped.

    Raises:
        TextError: The file is missing, cut off, or not UTF-8 (with the line's number).
    """
    number = 0
    with ExitStack() as stack:
        for block in read_blocks(path, open_stream(path, stack)):
            for line in (block if number else block.removeprefix(_BYTE_ORDER_MARK)).split(b"\n"):
                number += 1
                try:
                    yield line.decode("utf-8").rstrip("\r")
                except UnicodeDecodeError as error:
                    seen = f"line {number} is not UTF-8 (byte 0x{line[error.start]:02x})"
                    raise TextError(f"{path}: {seen}; convert the file, e.g. with iconv") from error
