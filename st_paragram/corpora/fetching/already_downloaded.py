"""Tell which files are there already, and note those that are."""

from __future__ import annotations

import logging
from datetime import datetime, timezone
from pathlib import Path

from st_paragram.corpora.fetching.contents import HEAD_BYTES, check_head
from st_paragram.corpora.fetching.corpus_file import CorpusFile
from st_paragram.corpora.fetching.manifest import Entry, Manifest, sha256_of
from st_paragram.corpora.fetching.transfer import Received
from st_paragram.errors import DownloadError

logger = logging.getLogger(__name__)


def is_there(file: CorpusFile, path: Path, manifest: Manifest) -> bool:
    """Whether a file is there and need not be fetched; one that the manifest does not know is looked at and noted."""
    if manifest.holds(path):
        entry = manifest.entries[path.name]
        return file.sha256 in (None, entry.sha256) and file.size in (None, entry.size)
    if path.name in manifest.entries or not path.is_file():
        return False
    return _adopt(file, path, manifest)


def _adopt(file: CorpusFile, path: Path, manifest: Manifest) -> bool:
    """A file under its final name is whole: somebody put it there, or we did and were ended before noting it."""
    size, sha256 = path.stat().st_size, sha256_of(path)
    try:
        with path.open("rb") as handle:
            check_head(path.name, handle.read(HEAD_BYTES), str(path), file.advice)
    except DownloadError as error:
        logger.warning(f"{error}; it is fetched again")
        return False
    if file.size not in (None, size) or file.sha256 not in (None, sha256):
        logger.warning(f"{path}: not the file that is known under this name; it is fetched again")
        return False
    logger.info(f"{path}: was there already, {size:,} bytes; taken as it is")
    record(file, path, size, sha256, manifest)
    return True


def record(
    file: CorpusFile, path: Path, size: int, sha256: str, manifest: Manifest, received: Received | None = None
) -> None:
    """Note a file in the manifest, with what the server said of it if it was fetched just now."""
    entry = Entry(
        url=file.url,
        size=size,
        sha256=sha256,
        mtime_ns=path.stat().st_mtime_ns,
        fetched=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        etag=received.origin.etag if received else None,
        last_modified=received.origin.last_modified if received else None,
        corpus=f"{file.name} {file.version}",
        licence=file.licence,
        citation=file.citation,
    )
    manifest.record(path.name, entry)
