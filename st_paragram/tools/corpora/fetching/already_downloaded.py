"""Tell which files have been downloaded already, and record files in the manifest."""

from __future__ import annotations

import logging
from datetime import datetime, timezone
from pathlib import Path

from st_paragram.core.files import content_digest
from st_paragram.errors import DownloadError
from st_paragram.tools.corpora.fetching.contents import HEAD_BYTES, check_head
from st_paragram.tools.corpora.fetching.corpus_file import CorpusFile
from st_paragram.tools.corpora.fetching.manifest import Entry, Manifest
from st_paragram.tools.corpora.fetching.transfer import Received

logger = logging.getLogger(__name__)


def already_downloaded(file: CorpusFile, path: Path, manifest: Manifest) -> bool:
    """Whether a file need not be fetched; one that is not in the manifest yet is checked and recorded there."""
    if manifest.holds(path):
        entry = manifest.entries[path.name]
        return file.sha256 in (None, entry.sha256) and file.size in (None, entry.size)
    if path.name in manifest.entries or not path.is_file():
        return False
    return _adopt(file, path, manifest)


def _adopt(file: CorpusFile, path: Path, manifest: Manifest) -> bool:
    """Take a file that nobody recorded: it was put there by hand, or a run ended just before recording it."""
    size, sha256 = path.stat().st_size, content_digest(path)
    try:
        with path.open("rb") as handle:
            check_head(path.name, handle.read(HEAD_BYTES), str(path), file.advice)
    except DownloadError as error:
        logger.warning(f"{error}; it is fetched again")
        return False
    if file.size not in (None, size) or file.sha256 not in (None, sha256):
        logger.warning(f"{path}: not the file that the catalogue knows under this name; it is fetched again")
        return False
    logger.info(f"{path}: found there ({size:,} bytes) and taken as it is")
    record(file, path, size, sha256, manifest)
    return True


def record(
    file: CorpusFile, path: Path, size: int, sha256: str, manifest: Manifest, received: Received | None = None
) -> None:
    """Record a file in the manifest, with what the server said of it if it has just been fetched."""
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
