"""What a file must be before it gets its final name: complete, of its kind, of the known size and checksum."""

from __future__ import annotations

from pathlib import Path

from st_paragram.core.data.archives import check_archive
from st_paragram.errors import DownloadError, TextError
from st_paragram.tools.corpora.fetching.contents import HEAD_BYTES, check_head
from st_paragram.tools.corpora.fetching.corpus_file import CorpusFile


class Spoiled(DownloadError):
    """What the server sent is of no use, so nothing of it is kept."""


def verify_size(file: CorpusFile, size: int, most_bytes: int | None = None, whole: bool = True) -> None:
    """Compare the size of a file with the one that is known, and with the largest that is allowed.

    Args:
        file: The file.
        size: Bytes that have come.
        most_bytes: The largest size allowed; None for any.
        whole: Whether all has come; only then is the size compared with the known one.

    Raises:
        Spoiled: The sizes differ, or the file is too large.
    """
    if whole and file.size is not None and size != file.size:
        raise Spoiled(
            f"{file.label}: it has {size:,} bytes, where {file.size:,} are known; nothing is kept. If it is another "
            f"version, correct the catalogue; else try again later, or {file.advice}"
        )
    if most_bytes is not None and size > most_bytes:
        raise Spoiled(f"{file.label}: it has more than {most_bytes:,} bytes, so it is not what was published")


def verify_sha256(file: CorpusFile, sha256: str) -> None:
    """Compare the checksum of a file with the one that is known.

    Raises:
        Spoiled: The checksums differ.
    """
    if file.sha256 not in (None, sha256):
        raise Spoiled(
            f"{file.label}: its SHA-256 is {sha256}, where {file.sha256} is known; nothing is kept. The file has "
            f"changed on the server or on its way: try again later, or {file.advice}"
        )


def verify_head(file: CorpusFile, head: bytes) -> None:
    """Check the first bytes of a file, up to `HEAD_BYTES`.

    Raises:
        Spoiled: It is a web page, or not of the kind that its name says.
    """
    try:
        check_head(file.filename, head, file.label, file.advice)
    except DownloadError as error:
        raise Spoiled(str(error)) from error


def verify_contents(file: CorpusFile, path: Path) -> None:
    """Check a complete file; for a zip archive, also its list of members.

    Raises:
        Spoiled: It is empty, not of the kind that its name says, or an archive that must not be used.
    """
    with path.open("rb") as handle:
        head = handle.read(HEAD_BYTES)
    if not head:
        raise Spoiled(f"{file.label}: nothing came, an empty file; try again later, or {file.advice}")
    verify_head(file, head)
    if file.filename.endswith(".zip"):
        try:
            check_archive(path, where=file.label)
        except TextError as error:
            raise Spoiled(f"{error}; nothing is kept; try again later, or {file.advice}") from error
