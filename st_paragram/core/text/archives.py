"""Check an archive before it is used: names that lead out of it, impossible sizes, members that overlap."""

from __future__ import annotations

import lzma
import re
import stat
import struct
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from st_paragram.errors import DAMAGED, TextError, one_line

MOST_BYTES = 1 << 38  # 256 GiB of text in one archive; the largest of OPUS hold some tens of GiB
MOST_RATIO = 200  # unpacked to packed; text packs to a third, a member of equal bytes to a thousandth
SMALL = 1 << 24  # bytes; the ratio of smaller members is not checked
#: What Python's readers of archives raise where one is damaged.
DAMAGED_ARCHIVE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, MemoryError, *DAMAGED)
_LOCAL_HEADER = 30  # bytes before the name of a member (APPNOTE.TXT 4.3.7)
_REFUSED = "the archive is refused; fetch it again from its source"
_DRIVE = re.compile(r"[A-Za-z]:")


def check_archive(
    path: str | Path, most_bytes: int = MOST_BYTES, most_ratio: float = MOST_RATIO, where: str | None = None
) -> None:
    """Check a zip archive by its directory, without unpacking anything.

    Args:
        path: the archive.
        most_bytes: of all members, unpacked.
        most_ratio: of unpacked to packed size, for members above `SMALL` bytes.
        where: what messages call it; its path by default.

    Raises:
        TextError: it is cut off or damaged, or `check_members` refuses it.
    """
    where = str(path) if where is None else where
    try:
        with zipfile.ZipFile(path) as archive:
            check_members(archive, where, most_bytes, most_ratio)
    except DAMAGED_ARCHIVE as error:
        raise TextError(
            f"{where}: truncated or damaged zip archive ({one_line(error)}); fetch the file again"
        ) from error


def check_members(
    archive: zipfile.ZipFile, where: str, most_bytes: int = MOST_BYTES, most_ratio: float = MOST_RATIO
) -> None:
    """Check the directory of an open zip archive. Reading never goes beyond the sizes it states.

    Raises:
        TextError: a member leads out of the archive, is a link, is encrypted, overlaps another or lies outside, or
            members are too large or too tightly packed to be text. The message names the member.
    """
    unpacked = 0
    for info in archive.infolist():
        check_name(info.orig_filename, where)
        if stat.S_ISLNK(info.external_attr >> 16):
            raise TextError(f"{where}: member {info.filename!r} is a link; {_REFUSED}")
        if info.flag_bits & 1:
            raise TextError(f"{where}: member {info.filename!r} is encrypted; unpack it first")
        unpacked += info.file_size
        if info.file_size > SMALL and info.file_size > most_ratio * info.compress_size:
            raise TextError(
                f"{where}: member {info.filename!r} swells from {info.compress_size:,} to {info.file_size:,} bytes, "
                f"more than {most_ratio:g} times, as no text does; {_REFUSED}"
            )
    check_total(unpacked, most_bytes, where)
    _check_places(archive, where)


def check_name(name: str, where: str) -> None:
    """Refuse the name of a member that would lead out of the folder it is unpacked in, on any system.

    Raises:
        TextError: it is absolute, has `..`, a backslash, a drive letter or a NUL.
    """
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or _DRIVE.match(name):
        raise TextError(f"{where}: member {name!r} points outside the archive; {_REFUSED}")


def check_total(unpacked: int, most_bytes: int, where: str) -> None:
    """Refuse an archive by its unpacked size in bytes.

    Raises:
        TextError: it is above `most_bytes`.
    """
    if unpacked > most_bytes:
        raise TextError(f"{where}: unpacks to more than {most_bytes:,} bytes; {_REFUSED}")


def _check_places(archive: zipfile.ZipFile, where: str) -> None:
    """Each member must end before the next begins, the last before the directory: zip bombs share packed bytes."""
    members = sorted(archive.infolist(), key=lambda info: info.header_offset)
    ends = [info.header_offset for info in members[1:]] + [archive.start_dir]
    for info, end in zip(members, ends, strict=False):
        if info.header_offset < 0 or info.header_offset + _LOCAL_HEADER + info.compress_size > end:
            raise TextError(f"{where}: member {info.filename!r} overlaps what follows it; {_REFUSED}")
