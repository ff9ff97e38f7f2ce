"""What a file must be before it gets its name: of the size and checksum that are known, whole, and of its kind."""

from __future__ import annotations

import shutil
from pathlib import Path

from st_paragram.corpora.fetching.contents import HEAD_BYTES, check_head
from st_paragram.corpora.fetching.corpus_file import CorpusFile
from st_paragram.data.archives import check_archive
from st_paragram.errors import DownloadError, TextError


class Spoiled(DownloadError):
    """What came is of no use, so nothing of it is kept."""


def verify_size(file: CorpusFile, size: int, most_bytes: int | None = None, whole: bool = True) -> None:
    """Compare a size in bytes with the one that is known, and with the most there may be.

    Raises:
        Spoiled: They differ (looked at if `whole`), or it is too much.
    """
    if whole and file.size is not None and size != file.size:
        raise Spoiled(
            f"{file.label}: {size:,} bytes, where {file.size:,} are known; nothing is kept. Another version? "
            f"Correct what is known, try again later, or {file.advice}"
        )
    if most_bytes is not None and size > most_bytes:
        raise Spoiled(f"{file.label}: more than {most_bytes:,} bytes; it is not what was published")


def verify_sha256(file: CorpusFile, sha256: str) -> None:
    """Compare a checksum with the one that is known.

    Raises:
        Spoiled: They differ.
    """
    if file.sha256 not in (None, sha256):
        raise Spoiled(
            f"{file.label}: SHA-256 is {sha256}, where {file.sha256} is known; nothing is kept. The file has changed "
            f"there, or on its way; try again later, or {file.advice}"
        )


def verify_head(file: CorpusFile, head: bytes) -> None:
    """Look at the first bytes, up to `HEAD_BYTES`.

    Raises:
        Spoiled: It is a web page, or not of its kind.
    """
    try:
        check_head(file.filename, head, file.label, file.advice)
    except DownloadError as error:
        raise Spoiled(str(error)) from error


def verify_contents(file: CorpusFile, path: Path) -> None:
    """Look into a file that has come whole; of a zip archive the directory is checked.

    Raises:
        Spoiled: It is not of its kind, or an archive that is not to be used.
    """
    with path.open("rb") as handle:
        verify_head(file, handle.read(HEAD_BYTES))
    if file.filename.endswith(".zip"):
        try:
            check_archive(path, where=file.label)
        except TextError as error:
            raise Spoiled(f"{error}; nothing is kept; try again later, or {file.advice}") from error


def verify_room(file: CorpusFile, to_come: int, folder: Path) -> None:
    """Look for room on the disk.

    Raises:
        DownloadError: More bytes are to come than there is room for.
    """
    if to_come > (free := shutil.disk_usage(folder).free):
        raise DownloadError(
            f"{file.label}: {to_come:,} bytes to come, but {free:,} free at {folder}; make room, or take another folder"
        )
