"""Text files, plain or compressed, read in blocks of whole lines."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import count
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from st_paragram.core.extras import require
from st_paragram.core.files import STDIN, is_pipe
from st_paragram.errors import TextError, one_line, refused

BLOCK_BYTES = 1 << 18
MAX_LINE_BYTES = 1 << 24
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# visits each run only once, however long it is
TRAILING_RETURNS = re.compile(r"(?<!\r)\r+(?=\n|\Z)")
# Formats of translation tools and offices, which are not lines of text
_OTHER_FORMATS = {
    **dict.fromkeys(
        (".tmx", ".xlf", ".xliff", ".sdlxliff", ".mqxliff"), "a file of a translation tool"
    ),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "a spreadsheet"),
    **dict.fromkeys((".docx", ".doc", ".odt", ".pdf", ".rtf"), "a document of an office program"),
}
_PACKED_BEGINS = (b"\x1f\x8b", b"\xfd7zXZ", b"BZh91AY", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")


class ByteStream(Protocol):
    """An object with the `read` method of a binary file."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end."""


def _open_zstd(path: str, _: str) -> Any:
    return require("pyarrow", "parquet", f"{path}: zstd").input_stream(path, compression="zstd")


#: File extension -> function that opens compressed files.
PACKED: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open, ".zst": _open_zstd}


def stream_name(path: str) -> str:
    """Return the name of a file or of standard input for messages."""
    return "standard input" if path == STDIN else path


def open_stream(path: str, stack: ExitStack) -> ByteStream:
    """Open a file, compressed if its extension is in `PACKED`, or standard input, which is plain
    and stays open.
    """
    if path == STDIN:
        return sys.stdin.buffer
    format_name = _OTHER_FORMATS.get(unpacked_suffix(path))
    if format_name and Path(path).is_file():
        raise TextError(
            f"{path}: is {format_name}, not text; export it as tab-separated text, CSV or JSON"
            " lines"
        )
    try:
        stream: ByteStream = stack.enter_context(
            PACKED.get(PurePath(path).suffix.lower(), open)(path, "rb")
        )
    except OSError as error:
        raise TextError(f"{path}: {one_line(error, about=path)}; check the path") from error
    stack.enter_context(unchanged([path]))
    return stream


@contextmanager
def unchanged(paths: Iterable[str]) -> Iterator[None]:
    """Refuse files whose size changes meanwhile, since a part of them, or a mixture, was read."""
    sizes = {path: _size(path) for path in paths}
    yield
    for path, before in sizes.items():
        after = _size(path)
        if before is not None and after not in (before, None):
            seen = f"changed while it was read, from {before:,} to {after:,} bytes"
            raise TextError(f"{path}: {seen}; run again when the file is complete")


def _size(path: str) -> int | None:
    """Return the size of a regular file; None for pipes and missing files."""
    return Path(path).stat().st_size if Path(path).is_file() else None


def unpacked_suffix(path: str) -> str:
    """Return the file extension in lower case, without that of a compression: `.csv` for
    `pairs.CSV.gz`.
    """
    name = PurePath(path.lower())
    if name.suffix in PACKED:
        name = PurePath(name.stem)
    return name.suffix


def regular_file(path: str, stack: ExitStack) -> str:
    """Return a path that can be read more than once: `path`, or a temporary copy of a pipe."""
    if not is_pipe(path):
        return path
    copy = Path(stack.enter_context(TemporaryDirectory(prefix="st-paragram-"))) / "text"
    with copy.open("wb") as file, ExitStack() as pipe:
        stream = open_stream(path, pipe)
        while block := stream.read(BLOCK_BYTES):
            file.write(block)
    return str(copy)


def unreadable(name: str) -> AbstractContextManager[None]:
    """Refuse a damaged compressed file."""
    advice = "if it is damaged or incomplete, download it again"
    return refused(
        TextError, name, "cannot be read", advice, zlib.error, lzma.LZMAError, zipfile.BadZipFile
    )


def read_blocks(name: str, stream: ByteStream) -> Iterator[bytes]:
    r"""Yield blocks of whole lines without the ``\n`` of the last one, so that ``split(b"\n")``
    gives rows.
    """
    rest = b""
    for number in count():
        with unreadable(name):
            data = stream.read(BLOCK_BYTES)
        if not data:
            break
        if number == 0 and data.startswith(_PACKED_BEGINS):
            raise TextError(
                f"{name}: looks like a compressed file; its name must end in {', '.join(PACKED)} or"
                " .zip"
            )
        if number == 0 and _has_only_returns(data):
            seen = r"its lines end in carriage returns (\r) without line feeds (\n)"
            raise TextError(f"{name}: {seen}; convert it with: tr '\\r' '\\n'")
        end = data.rfind(b"\n")
        if end >= 0:
            yield rest + data[:end]
            rest = data[end + 1 :]
        elif len(rest := rest + data) > MAX_LINE_BYTES:
            raise TextError(
                f"{name}: a line longer than {MAX_LINE_BYTES >> 20} MiB; is this a text file?"
            )
    if rest:
        yield rest


def _has_only_returns(data: bytes) -> bool:
    """Whether the first block of a text has several lines that end in carriage returns only."""
    if b"\n" in data:
        return False
    inner_returns = data.rstrip(b"\r").count(b"\r")
    return inner_returns + data.endswith(b"\r") > 1


def read_lines(path: str) -> Iterator[str]:
    r"""Yield the lines of a text, split only at ``\n``, without byte order mark and trailing
    carriage returns.
    """
    name, first, mark = stream_name(path), 1, BYTE_ORDER_MARK
    with ExitStack() as stack:
        for block in read_blocks(name, open_stream(path, stack)):
            lines = decode(name, block.removeprefix(mark), first).split("\n")
            yield from (line.rstrip("\r") for line in lines) if b"\r" in block else lines
            first, mark = first + len(lines), b""


def decode(name: str, block: bytes, first: int, advice: str = "") -> str:
    """Decode a block of lines; if it is not UTF-8, the error names the line, counted from `first`."""
    try:
        return block.decode()
    except UnicodeDecodeError as error:
        line = first + block.count(b"\n", 0, error.start)
        seen = f"line {line} is not UTF-8 (byte 0x{block[error.start]:02x})"
        raise TextError(f"{name}: {seen}; convert the file, e.g. with iconv{advice}") from error
