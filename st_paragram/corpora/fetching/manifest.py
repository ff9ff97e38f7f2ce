"""The manifest of a folder: what was fetched, from where, when, and how it can be told again."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from st_paragram.errors import DownloadError
from st_paragram.files import write_json

NAME = "manifest.json"
_FORMAT = 1

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Entry:
    """What is recorded of a file.

    Attributes:
        url: Where it came from.
        size: In bytes.
        sha256: Hexadecimal.
        mtime_ns: Of the file here when it was last hashed.
        fetched: Time, ISO 8601, UTC.
        etag: As the server gave it, or None.
        last_modified: As the server gave it, or None.
        corpus: Name and version.
        licence: In words.
        citation: In words.
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


class Manifest:
    """`manifest.json` of a folder; written whole each time something is added, from any thread."""

    def __init__(self, folder: Path) -> None:
        """Read what is there.

        Raises:
            DownloadError: It is no manifest.
        """
        self._path = folder / NAME
        self._lock = threading.Lock()
        self.entries = self._read()

    def holds(self, path: Path) -> bool:
        """Whether a file is there and still what was recorded; it is hashed only if its time has changed."""
        entry = self.entries.get(path.name)
        if entry is None or not path.is_file():
            return False
        status = path.stat()
        if status.st_size == entry.size and status.st_mtime_ns == entry.mtime_ns:
            return True
        if status.st_size == entry.size and sha256_of(path) == entry.sha256:
            self.record(path.name, replace(entry, mtime_ns=status.st_mtime_ns))
            return True
        logger.warning(f"{path}: not what was fetched any more; it is fetched again")
        return False

    def record(self, name: str, entry: Entry) -> None:
        """Add or replace an entry, on disk too; what others have added meanwhile stays."""
        with self._lock:
            self.entries = {**self._read(), **self.entries, name: entry}
            tree = {"format": _FORMAT, "files": {key: asdict(self.entries[key]) for key in sorted(self.entries)}}
            write_json(self._path, tree)

    def _read(self) -> dict[str, Entry]:
        if not self._path.exists():
            return {}
        known = {item.name for item in fields(Entry)}
        try:
            tree = json.loads(self._path.read_text(encoding="utf-8"))
            if tree["format"] != _FORMAT:
                raise ValueError(f"format {tree['format']}")
            files = tree["files"].items()
            return {name: Entry(**{key: row[key] for key in row.keys() & known}) for name, row in files}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DownloadError(
                f"{self._path}: no manifest that can be read ({error}); move it away, and files are hashed anew"
            ) from error


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with path.open("rb") as handle:
        digest = hashlib.sha256()
        while block := handle.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
