"""Digests of stores that were read through before, in the user's cache, so that this is done once for a file."""

from __future__ import annotations

import re
from pathlib import Path

from st_paragram.files import cache_folder, file_digest, write_text


class KnownDigest:
    """What is known of one file, told apart by its path, its size and the time of its last change."""

    def __init__(self, path: Path) -> None:
        self._file = cache_folder() / "store-digests" / file_digest(path)

    def read(self) -> str | None:
        """The digest, or None if it is not known."""
        try:
            known = self._file.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            return None
        return known if re.fullmatch("[0-9a-f]{64}", known) else None

    def write(self, digest: str) -> None:
        """Keep a digest; a cache that cannot be written to is done without."""
        try:
            write_text(self._file, f"{digest}\n")
        except OSError:
            return
