"""Text files, plain or compressed, read in blocks of whole lines."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import re
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path, PurePath
from typing import Any, Protocol

from st_paragram.core.extras import require
from st_paragram.core.files import (
    HDF5_SIGNATURE,
    NUMPY_SIGNATURE,
    STDIN,
    folder_for_file,
    is_pipe,
)
from st_paragram.core.folders import scratch_folder
from st_paragram.errors import TextError, one_line, refused

BLOCK_BYTES = 1 << 18
MAX_LINE_BYTES = 1 << 24
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# visits each run only once, however long it is
TRAILING_RETURNS = re.compile(r"(?<!\r)\r+(?=\n|\Z)")
#: Extensions of files that hold translations in several languages
TRANSLATION_FILES = (".tmx", ".xlf", ".xliff", ".sdlxliff", ".mqxliff")
# Extensions of files that are not lines of text
_OTHER_FORMATS = {
    "a spreadsheet": (".xlsx", ".xls", ".ods"),
    "a document of an office program": (".docx", ".doc", ".odt", ".pdf", ".rtf"),
    "JSON": (".json",),
}
_PACKED_BEGINS = (b"\x1f\x8b", b"\xfd7zXZ", b"BZh91AY", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")
# First bytes of other files, what they are, and what to do
_OTHER_BEGINS = {
    HDF5_SIGNATURE: "HDF5, not text; the name of a pair store must end in .h5",
    NUMPY_SIGNATURE: "a numpy array, not text; name a text",
    b"PAR1": "a Parquet table, not text; its name must end in .parquet",
    b"%PDF-": "a PDF document, not text; export it as text",
    b"<?xml": "XML, not text; save a translation file as .tmx or .xlf, not in an archive",
}
# Byte order marks of encodings other than UTF-8; the mark of UTF-32 begins like that of UTF-16
_OTHER_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_SAMPLE_BYTES = 4096  # of a text, to recognize its encoding


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


def open_stream(path: str, stack: ExitStack, is_text: bool = True) -> ByteStream:
    """Open a file, compressed if its extension is in `PACKED`, or standard input.

    Standard input is plain, and stays open. `is_text`: refuse translation files, which are XML.
    """
    if path == STDIN:
        return sys.stdin.buffer
    if wrong := folder_for_file(path):
        raise TextError(f"{wrong}; name a file")
    if is_text and unpacked_suffix(path) in TRANSLATION_FILES:
        raise TextError(
            f"{path}: is a translation file, but text is expected; write its pairs as text with"
            f" `st-paragram clean {path} --pair CODE CODE --output pairs.tsv`"
        )
    for format_name, suffixes in _OTHER_FORMATS.items():
        if unpacked_suffix(path) in suffixes and Path(path).is_file():
            raise TextError(
                f"{path}: is {format_name}, not text;"
                " export it as tab-separated text, CSV or JSON lines (.jsonl)"
            )
    open_file = PACKED.get(PurePath(path).suffix.lower(), open)
    try:
        stream: ByteStream = stack.enter_context(open_file(path, "rb"))
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
            raise TextError(
                f"{path}: changed while it was read, from {before:,} to {after:,} bytes;"
                " run again when the file is complete"
            )


def _size(path: str) -> int | None:
    """Return the size of a regular file; None for pipes and missing files."""
    return Path(path).stat().st_size if Path(path).is_file() else None


def unpacked_suffix(path: str) -> str:
    """Return the file extension in lower case: `.csv` for `pairs.CSV.gz`."""
    name = PurePath(path.lower())
    return PurePath(name.stem).suffix if name.suffix in PACKED else name.suffix


def regular_file(path: str, stack: ExitStack) -> str:
    """Return a path that can be read more than once: `path`, or a temporary copy of a pipe."""
    if not is_pipe(path):
        return path
    copy = stack.enter_context(scratch_folder()) / "text"
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
    r"""Yield blocks of whole lines without the ``\n`` of the last one.

    So ``split(b"\n")`` gives the lines.
    """
    rest = b""
    is_first = True
    while True:
        with unreadable(name):
            data = stream.read(BLOCK_BYTES)
        if not data:
            break
        if is_first:
            _check_beginning(name, data)
            is_first = False
        end = data.rfind(b"\n")
        if end >= 0:
            yield rest + data[:end]
            rest = data[end + 1 :]
            continue
        rest += data
        if len(rest) > MAX_LINE_BYTES:
            raise TextError(
                f"{name}: a line longer than {MAX_LINE_BYTES >> 20} MiB; is this a text file?"
            )
    if rest:
        yield rest


def _check_beginning(name: str, data: bytes) -> None:
    """Refuse other files than texts, other encodings than UTF-8, and texts whose lines end in
    carriage returns only.
    """
    encoding = _other_encoding(data)
    if encoding:
        raise TextError(
            f"{name}: {encoding} text; convert it: iconv -f {encoding} -t UTF-8 FILE > NEW_FILE"
        )
    beginning = data.removeprefix(BYTE_ORDER_MARK)
    for first_bytes, kind in _OTHER_BEGINS.items():
        if beginning.startswith(first_bytes):
            raise TextError(f"{name}: is {kind}")
    if data.startswith(_PACKED_BEGINS):
        raise TextError(
            f"{name}: looks like a compressed file; its name must end in {', '.join(PACKED)} or"
            " .zip"
        )
    if b"\n" in data:
        return
    returns = data.rstrip(b"\r").count(b"\r") + data.endswith(b"\r")
    if returns > 1:
        raise TextError(
            rf"{name}: its lines end in carriage returns (\r) without line feeds (\n);"
            r" convert it with: tr '\r' '\n'"
        )


def _other_encoding(data: bytes) -> str | None:
    """Return the encoding of a text that begins with `data` if it is UTF-16 or UTF-32."""
    for mark, encoding in _OTHER_MARKS.items():
        if data.startswith(mark):
            return encoding
    # without a mark: every second byte of ASCII characters in UTF-16 is NUL
    sample = data[:_SAMPLE_BYTES]
    enough = max(8, len(sample) // 50)
    first = sample[::2].count(0)
    second = sample[1::2].count(0)
    if first == 0 and second >= enough:
        return "UTF-16LE"
    if second == 0 and first >= enough:
        return "UTF-16BE"
    return None


def read_lines(path: str) -> Iterator[str]:
    r"""Yield the lines of a text, split only at ``\n``, without carriage returns at their ends."""
    name = stream_name(path)
    number = 1
    with ExitStack() as stack:
        for block in read_blocks(name, open_stream(path, stack)):
            if number == 1:
                block = block.removeprefix(BYTE_ORDER_MARK)
            lines = decode(name, block, number).split("\n")
            number += len(lines)
            if b"\r" in block:
                lines = [line.rstrip("\r") for line in lines]
            yield from lines


def decode(name: str, block: bytes, first: int, advice: str = "") -> str:
    """Decode a block of lines, of which the first has the number `first` in error messages."""
    try:
        return block.decode()
    except UnicodeDecodeError as error:
        line = first + block.count(b"\n", 0, error.start)
        raise TextError(
            f"{name}: line {line} is not UTF-8 (byte 0x{block[error.start]:02x});"
            f" convert the file, e.g. with iconv{advice}"
        ) from error
