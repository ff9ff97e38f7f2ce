"""The manifest of a folder: which files were fetched, when and from where, with their checksums."""

from __future__ import annotations

import logging
import threading
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

from st_paragram.core.files import content_digest, output_lock, read_record, write_json
from st_paragram.errors import DownloadError, refused
from st_paragram.tools.corpora.fetching.checks import HEAD_BYTES, Spoiled, check_head, check_known
from st_paragram.tools.corpora.fetching.corpus_file import CorpusFile
from st_paragram.tools.corpora.fetching.part import Origin

NAME = "manifest.json"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Entry:
    """What is recorded of a file.

    Attributes:
        url: The address it came from.
        size: Its size in bytes.
        sha256: Its SHA-256, in hexadecimal digits.
        mtime_ns: When the local file was last changed, as of the last time it was hashed; nanoseconds.
        fetched: When it was fetched: ISO 8601, UTC.
        etag: The ETag that the server sent, or None.
        last_modified: The date that the server sent, or None.
        corpus: Name and version of the corpus.
        licence: The licence, in words.
        citation: The publication to cite.
    """

    url: str
    size: int
    sha256: str
    mtime_ns: int
    fetched: str
    etag: str | None = None
    last_modified: str | None = None
    corpus: str = ""
    licence: str = ""
    citation: str = ""


@dataclass(frozen=True)
class _Contents:
    """What the file holds."""

    format: Literal[1]
    files: dict[str, Entry]


class Manifest:
    """`manifest.json` of a folder; any thread may add to it, and each time it is written whole."""

    def __init__(self, folder: Path) -> None:
        """Read the manifest of a folder; it is empty if there is none.

        Raises:
            DownloadError: The file is not a manifest.
        """
        self._path = folder / NAME
        self._lock = threading.Lock()
        self.entries = self._read()

    def has(self, file: CorpusFile, path: Path) -> bool:
        """Whether a file need not be fetched; one that is not in the manifest yet is checked and recorded there."""
        if self._holds(path):
            entry = self.entries[path.name]
            return file.sha256 in (None, entry.sha256) and file.size in (None, entry.size)
        return path.name not in self.entries and path.is_file() and self._adopt(file, path)

    def record(self, file: CorpusFile, path: Path, size: int, sha256: str, origin: Origin | None = None) -> None:
        """Record a file, with what the server said of it if it has just been fetched."""
        entry = Entry(
            url=file.url,
            size=size,
            sha256=sha256,
            mtime_ns=path.stat().st_mtime_ns,
            fetched=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            etag=origin.etag if origin else None,
            last_modified=origin.last_modified if origin else None,
            corpus=f"{file.name} {file.version}",
            licence=file.licence,
            citation=file.citation,
        )
        self._set(path.name, entry)

    def _holds(self, path: Path) -> bool:
        """Whether a file exists and still is what was recorded; it is hashed only if its time has changed."""
        entry = self.entries.get(path.name)
        if entry is None or not path.is_file():
            return False
        status = path.stat()
        if status.st_size == entry.size and status.st_mtime_ns == entry.mtime_ns:
            return True
        if status.st_size == entry.size and content_digest(path) == entry.sha256:
            self._set(path.name, replace(entry, mtime_ns=status.st_mtime_ns))
            return True
        logger.warning(f"{path}: no longer what was fetched; it is fetched again")
        return False

    def _adopt(self, file: CorpusFile, path: Path) -> bool:
        """Take a file that nobody recorded: it was put there by hand, or a run ended just before recording it."""
        size, sha256 = path.stat().st_size, content_digest(path)
        try:
            with path.open("rb") as handle:
                check_head(file, handle.read(HEAD_BYTES))
            check_known(file, size, sha256)
        except Spoiled as error:
            logger.warning(f"{path} is fetched again: {error}")
            return False
        logger.info(f"{path}: found there ({size:,} bytes) and taken as it is")
        self.record(file, path, size, sha256)
        return True

    def _set(self, name: str, entry: Entry) -> None:
        """Add or replace an entry, on disk too; entries that other processes have added meanwhile stay."""
        with self._lock, output_lock(self._path, wait=True):
            self.entries = {**self._read(), **self.entries, name: entry}
            write_json(self._path, asdict(_Contents(1, dict(sorted(self.entries.items())))))

    def _read(self) -> dict[str, Entry]:
        if not self._path.exists():
            return {}
        advice = "move it away, and the files are hashed again"
        with refused(DownloadError, self._path, "not readable as a manifest", advice):
            return read_record(self._path, _Contents).files
