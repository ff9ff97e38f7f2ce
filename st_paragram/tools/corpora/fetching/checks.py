"""What a file must be before it gets its final name: of its kind, of the known size and checksum, with room for it."""

from __future__ import annotations

import re
import shutil
import zipfile
from pathlib import Path, PurePosixPath

from st_paragram.errors import DAMAGED, DownloadError, one_line
from st_paragram.tools.corpora.fetching.corpus_file import CorpusFile
from st_paragram.tools.corpora.fetching.http import Answer

HEAD_BYTES = 512  # enough to recognize all kinds
SPARE = 1 << 28  # bytes of the disk that a file of unknown size must leave free
_STARTS = {
    ".zip": (b"PK\x03\x04", b"PK\x05\x06"),
    ".gz": (b"\x1f\x8b",),
    ".tgz": (b"\x1f\x8b",),
    ".bz2": (b"BZh",),
    ".xz": (b"\xfd7zXZ\x00",),
}
_PAGES = (b"<!doctype html", b"<html", b"<head", b"<?xml", b"<!--")
_DRIVE = re.compile(r"[A-Za-z]:")
_REMEDY = "perhaps a login, consent or error page: open the address in a browser"


class Spoiled(DownloadError):
    """What the server sent is of no use, so nothing of it is kept."""


def check_headers(file: CorpusFile, answer: Answer) -> None:
    """Refuse a web page sent instead of a file, or a file packed once more on its way though that was not asked for.

    A `.gz` file may be announced as packed: some servers take its own packing for one of the transfer.

    Raises:
        DownloadError: The body is not the file.
    """
    if (answer.header("Content-Type") or "").split(";")[0].strip().lower() in ("text/html", "application/xhtml+xml"):
        raise DownloadError(
            f"{file.label}: the server sends a web page (HTML) instead of {file.filename}; {_REMEDY}, or {file.advice}"
        )
    kept = ("identity", "gzip", "x-gzip") if file.filename.endswith((".gz", ".tgz")) else ("identity",)
    if (coding := answer.header("Content-Encoding")) and coding.strip().lower() not in kept:
        raise DownloadError(
            f"{file.label}: the server sends {file.filename} packed once more ({coding}); try again later, or "
            f"{file.advice}"
        )


def check_head(file: CorpusFile, head: bytes) -> None:
    """Refuse a file that is not of the kind that its name says, by its first `HEAD_BYTES` bytes (or all).

    Raises:
        Spoiled: It is a web page, or not a file of this kind.
    """
    page = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower().startswith(_PAGES)
    for ending, starts in _STARTS.items():
        if file.filename.endswith(ending) and not head.startswith(starts) and not page:
            raise Spoiled(
                f"{file.label}: not a {ending[1:]} file, it begins with {head[:12]!r}; nothing is kept. Try again "
                f"later, or {file.advice}"
            )
    if page:
        raise Spoiled(f"{file.label}: a web page (HTML) came instead of {file.filename}; {_REMEDY}, or {file.advice}")


def check_most(file: CorpusFile, size: int, most_bytes: int | None) -> None:
    """Refuse more bytes than are allowed (None: any number).

    Raises:
        Spoiled: The file is too large.
    """
    if most_bytes is not None and size > most_bytes:
        raise Spoiled(f"{file.label}: it has more than {most_bytes:,} bytes, so it is not what was published")


def check_known(file: CorpusFile, size: int, sha256: str | None = None) -> None:
    """Compare the size of a file, and its checksum where it is given, with what the catalogue knows.

    Raises:
        Spoiled: They differ.
    """
    if file.size not in (None, size):
        raise Spoiled(
            f"{file.label}: it has {size:,} bytes, where {file.size:,} are known; nothing is kept. If it is another "
            f"version, correct the catalogue; else try again later, or {file.advice}"
        )
    if sha256 is not None and file.sha256 not in (None, sha256):
        raise Spoiled(
            f"{file.label}: its SHA-256 is {sha256}, where {file.sha256} is known; nothing is kept. The file has "
            f"changed on the server or on its way: try again later, or {file.advice}"
        )


def check_contents(file: CorpusFile, path: Path) -> None:
    """Check a complete file; for a zip archive, also its list of members.

    Raises:
        Spoiled: It is empty, not of the kind that its name says, or an archive that must not be used.
    """
    with path.open("rb") as handle:
        head = handle.read(HEAD_BYTES)
    if not head:
        raise Spoiled(f"{file.label}: nothing came, an empty file; try again later, or {file.advice}")
    check_head(file, head)
    if file.filename.endswith(".zip"):
        advice = f"nothing is kept; try again later, or {file.advice}"
        try:
            with zipfile.ZipFile(path) as archive:
                names = [member.orig_filename for member in archive.infolist()]
        except (zipfile.BadZipFile, *DAMAGED) as error:
            raise Spoiled(f"{file.label}: truncated or damaged zip archive ({one_line(error)}); {advice}") from error
        if outside := list(filter(leads_out, names)):
            raise Spoiled(f"{file.label}: member {outside[0]!r} points outside the archive; {advice}")


def leads_out(name: str) -> bool:
    """Whether a member of an archive would be unpacked outside the folder that it is unpacked in, on any system."""
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or bool(_DRIVE.match(name))


def check_room(file: CorpusFile, size: int, folder: Path) -> None:
    """Compare the `size` bytes of a file that are still to come with the free space.

    Raises:
        DownloadError: There is not enough space.
    """
    if size > (free := shutil.disk_usage(folder).free):
        raise DownloadError(
            f"{file.label}: {size:,} bytes are to come, but only {free:,} are free in {folder}; free disk space, or "
            "choose another folder"
        )
