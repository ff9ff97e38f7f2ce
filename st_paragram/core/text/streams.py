"""Open text files, plain or compressed, as byte streams and read them in blocks that end with a line."""

from __future__ import annotations

import bz2
import gzip
import lzma
import sys
import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from st_paragram.core.files import STDIN, folder_for_file
from st_paragram.core.text.archives import DAMAGED_ARCHIVE, check_members
from st_paragram.errors import TextError, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader

BLOCK_BYTES = 1 << 18
MAX_LINE_BYTES = 1 << 24
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_GZIP, _XZ, _BZIP2, _ZIP = b"\x1f\x8b", b"\xfd7zXZ\x00", b"BZh", (b"PK\x03\x04", b"PK\x05\x06")
_ZSTD = b"\x28\xb5\x2f\xfd"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class ByteStream(Protocol):
    """A source of bytes, as far as reading needs one."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end."""


class _Rewound:
    """A pipe of which the first bytes are read ahead: `peek` would not wait for bytes that come slowly."""

    def __init__(self, pipe: BufferedReader) -> None:
        self._pipe = pipe
        self._head = pipe.read(16)

    def peek(self, size: int) -> bytes:
        return self._head[:size]

    def read(self, size: int = -1) -> bytes:
        if not self._head:
            return self._pipe.read(size)
        size = len(self._head) if size < 0 else size
        head, self._head = self._head[:size], self._head[size:]
        return head


def stream_name(path: str) -> str:
    """What messages call a file, or standard input."""
    return "standard input" if path == STDIN else path


def is_zip(path: str) -> bool:
    """Tell by its first bytes whether a file is a zip archive; only regular files are looked into.

    Raises:
        TextError: the file cannot be opened.
    """
    if not Path(path).is_file():  # a pipe must not be read before its turn
        return False
    with _open_file(path) as handle:
        return handle.read(4) in _ZIP


def open_stream(path: str, stack: ExitStack) -> ByteStream:
    """Open a plain, gzip, xz or bzip2 file for reading; the kind follows from its first bytes, not by its name.

    Args:
        path: a file, or ``-`` for standard input, which may be compressed too.
        stack: closes the file when it is closed itself; standard input stays open.

    Raises:
        TextError: the file is missing, unreadable, or of a kind that cannot be read as a stream of text.
    """
    stdin = cast("BufferedReader", sys.stdin.buffer)
    raw: Any = _Rewound(stdin) if path == STDIN else stack.enter_context(_open_file(path))
    head = raw.peek(16)[:16]
    if head.startswith(_ZIP):
        raise TextError(f"{path}: zip archives cannot be read here; unpack it first")
    if head.startswith(_ZSTD):
        raise TextError(f"{path}: compressed with zstd, which is not supported here; unpack it first with zstd -d")
    if head.startswith(_UTF16):
        raise TextError(f"{path}: looks like UTF-16; convert it first with iconv -f UTF-16 -t UTF-8")
    if head.startswith(_GZIP):
        return stack.enter_context(gzip.GzipFile(fileobj=raw))
    if head.startswith(_XZ):
        return stack.enter_context(lzma.LZMAFile(raw))
    if head.startswith(_BZIP2) and head[4:10] == b"1AY&SY":
        return stack.enter_context(bz2.BZ2File(raw))
    return raw


def is_packed(path: str) -> bool:
    """Tell by its first bytes whether a regular file is packed by gzip, xz or bzip2.

    Raises:
        TextError: the file cannot be opened.
    """
    with _open_file(path) as handle:
        return handle.read(16).startswith((_GZIP, _XZ, _BZIP2))


def open_zip(path: str, stack: ExitStack) -> zipfile.ZipFile:
    """Open a zip archive; its members are only ever streamed, nothing is written to disk.

    Raises:
        TextError: the archive is damaged or was cut off (its directory is at its end), or has members that
            lead out of it, are links, are encrypted, overlap, or unpack to more than any text does.
    """
    try:
        archive = stack.enter_context(zipfile.ZipFile(path))
        check_members(archive, path)
    except DAMAGED_ARCHIVE as error:
        raise TextError(
            f"{path}: truncated or damaged zip archive ({one_line(error)}); fetch the file again"
        ) from error
    return archive


def open_member(archive: zipfile.ZipFile, member: str, stack: ExitStack) -> ByteStream:
    """Open one member of a zip archive as a stream.

    Raises:
        TextError: the member is encrypted, damaged or packed by an unknown method.
    """
    try:
        return stack.enter_context(archive.open(member))
    except DAMAGED_ARCHIVE as error:
        seen = f"member {one_line(member)} cannot be opened ({one_line(error)})"
        raise TextError(f"{archive.filename}: {seen}; unpack it first") from error


def read_blocks(name: str, stream: ByteStream) -> Iterator[bytes]:
    r"""Yield blocks of whole lines without the ``\n`` of the last one, so that ``split(b"\n")`` gives rows.

    Args:
        name: what to call the stream in errors.
        stream: read ``BLOCK_BYTES`` at a time.

    Raises:
        TextError: compressed data ends early or is damaged, or a line is longer than ``MAX_LINE_BYTES``.
    """
    rest = b""
    while data := _read(name, stream):
        end = data.rfind(b"\n")
        if end < 0:
            rest += data
            if len(rest) > MAX_LINE_BYTES:
                raise TextError(f"{name}: a line longer than {MAX_LINE_BYTES >> 20} MiB; is this a text file?")
            continue
        yield rest + data[:end]
        rest = data[end + 1 :]
    if rest:
        yield rest


def _read(name: str, stream: ByteStream) -> bytes:
    try:
        return stream.read(BLOCK_BYTES)
    except EOFError as error:
        raise TextError(f"{name}: truncated compressed file; fetch the file again") from error
    except DAMAGED_ARCHIVE as error:
        raise TextError(
            f"{name}: cannot be read ({one_line(error)}); if it is damaged, fetch the file again"
        ) from error


def _open_file(path: str) -> BufferedReader:
    try:
        return Path(path).open("rb")
    except FileNotFoundError as error:
        raise TextError(f"{path}: no such file; check the path") from error
    except IsADirectoryError as error:
        raise TextError(f"{folder_for_file(path)}; name a file") from error
    except OSError as error:
        raise TextError(f"{path}: cannot be opened ({error.strerror}); give a readable file") from error
