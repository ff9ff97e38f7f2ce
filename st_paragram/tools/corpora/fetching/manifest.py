"""The manifest of a folder: which files were fetched, when and from where, with their checksums."""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pydantic

from st_paragram.core.damage import printable
from st_paragram.core.files import content_digest, write_json
from st_paragram.errors import DownloadError

NAME = "manifest.json"
_FORMAT = 1

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


_ENTRY = pydantic.TypeAdapter(Entry)


class Manifest:
    """`manifest.json` of a folder; any thread may add to it, and each time it is written whole."""

    def __init__(self, folder: Path) -> None:
        """Read the manifest of a folder; it is empty if there is none.

        Raises:
            DownloadError: The file is no manifest.
        """
        self._path = folder / NAME
        self._lock = threading.Lock()
        self.entries = self._read()

    def holds(self, path: Path) -> bool:
        """Whether a file exists and still is what was recorded; it is hashed only if its time has changed."""
        entry = self.entries.get(path.name)
        if entry is None or not path.is_file():
            return False
        status = path.stat()
        if status.st_size == entry.size and status.st_mtime_ns == entry.mtime_ns:
            return True
        if status.st_size == entry.size and content_digest(path) == entry.sha256:
            self.record(path.name, replace(entry, mtime_ns=status.st_mtime_ns))
            return True
        logger.warning(f"{path}: no longer what was fetched; it is fetched again")
        return False

    def record(self, name: str, entry: Entry) -> None:
        """Add or replace an entry, on disk too; entries that other processes have added meanwhile stay."""
        with self._lock:
            self.entries = {**self._read(), **self.entries, name: entry}
            tree = {"format": _FORMAT, "files": {key: asdict(self.entries[key]) for key in sorted(self.entries)}}
            write_json(self._path, tree)

    def _read(self) -> dict[str, Entry]:
        if not self._path.exists():
            return {}
        try:
            tree = json.loads(self._path.read_text(encoding="utf-8"))
            if tree["format"] != _FORMAT:
                raise ValueError(f"format {tree['format']!r}")
            return {name: _ENTRY.validate_python(row) for name, row in tree["files"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            reason = error.errors()[0]["msg"] if isinstance(error, pydantic.ValidationError) else error
            raise DownloadError(
                f"{self._path}: not readable as a manifest ({printable(reason)}); move it away, and the "
                "files are hashed again"
            ) from error
