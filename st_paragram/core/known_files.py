"""Digests of files that were read through before, kept in the user's cache, so that this is done once for a file.

A file counts as the same while its path, size, inode and times of change are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from st_paragram.core.files import cache_folder, content_digest, digest, write_text
from st_paragram.errors import ParagramError


class KnownDigest:
    """The digest that is known of some files together.

    Args:
        purpose: what was computed, the name of a folder in the cache.
        paths: the files; a missing file counts as missing.
    """

    def __init__(self, purpose: str, paths: Sequence[Path]) -> None:
        self._file: Path | None = None
        with suppress(ParagramError):  # no cache: everything is read through each time
            self._file = cache_folder() / purpose / digest([_state(path) for path in paths])

    def read(self) -> str | None:
        """The SHA-256 in hexadecimal digits, or None if it is not known."""
        if self._file is None:
            return None
        try:
            known = self._file.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            return None
        return known if re.fullmatch("[0-9a-f]{64}", known) else None

    def write(self, sha256: str) -> None:
        """Keep a digest; does nothing where the cache cannot be written."""
        if self._file is not None:
            with suppress(OSError):
                write_text(self._file, f"{sha256}\n")


def known_content_digest(purpose: str, path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal digits; the file is read only if its digest is not known yet.

    Raises:
        OSError: the file cannot be read.
    """
    known = KnownDigest(purpose, [path])
    if (sha256 := known.read()) is None:
        sha256 = content_digest(path)
        known.write(sha256)
    return sha256


def _state(path: Path) -> list[str | int]:
    try:
        status = path.stat()
    except OSError:
        return [str(path)]
    times = [status.st_mtime_ns, status.st_ctime_ns]
    return [str(path.resolve()), status.st_size, status.st_dev, status.st_ino, *times]
