"""The lines of a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack

from st_paragram.core.text.streams import BYTE_ORDER_MARK, read_blocks, stream_name
from st_paragram.core.text.tables import open_columns
from st_paragram.errors import TextError


def read_lines(path: str, column: str | None = None) -> Iterator[str]:
    r"""Yield the lines of a plain, gzip, xz or bzip2 file, split at `\n` alone, or the texts of a column of a table.

    None is skipped. A byte order mark at the beginning is removed, and so are carriage returns at the ends of lines.

    Args:
        path: a file, or `-` for standard input, which may be compressed too.
        column: its name if the file is a table, see `tables.read_columns`; None: the file is plain text.

    Raises:
        TextError: the file is missing, cut off, or not UTF-8; then the message gives the number of the line.
        MissingExtraError: it is a Parquet table, and pyarrow is not installed.
    """
    name, first = stream_name(path), 1
    with ExitStack() as stack:
        for block in read_blocks(name, open_columns(path, [column] if column else [], stack)):
            if first == 1:
                block = block.removeprefix(BYTE_ORDER_MARK)
            lines = decode_lines(name, block, first)
            yield from (line.rstrip("\r") for line in lines) if b"\r" in block else lines
            first += block.count(b"\n") + 1


def decode_lines(name: str, block: bytes, first: int) -> Iterable[str]:
    r"""Decode a block of lines and split it at `\n`.

    Args:
        name: what to call the file in errors.
        block: whole lines, without the `\n` of the last one.
        first: the number of the first line.

    Raises:
        TextError: a line is not UTF-8, once that line is reached; the message gives its number.
    """
    try:
        return block.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        return _decode(name, block.split(b"\n"), first)


def _decode(name: str, lines: Iterable[bytes], first: int) -> Iterator[str]:
    """Decode lines one by one, to find the one that is not UTF-8."""
    for number, line in enumerate(lines, first):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            seen = f"line {number} is not UTF-8 (byte 0x{line[error.start]:02x})"
            raise TextError(f"{name}: {seen}; convert the file, e.g. with iconv") from error
