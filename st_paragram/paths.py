"""Where things are kept between runs."""

from __future__ import annotations

import os
from pathlib import Path

from st_paragram.errors import ParagramError


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/st_paragram`, or `~/.cache/st_paragram`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "st_paragram"


def check_output(path: Path, overwrite: bool) -> None:
    """Refuse an output file before any work is done for it.

    Raises:
        ParagramError: it exists and must not be overwritten, is no regular file, or its folder cannot be written to.
    """
    if path.exists():
        if not path.is_file() or not path.name:
            raise ParagramError(f"{path} is no regular file; name a file")
        if not overwrite:
            raise ParagramError(f"{path} exists; choose another name or give --overwrite")
    folder = next((parent for parent in path.absolute().parents if parent.exists()), path)
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ParagramError(f"{path}: {folder} is no folder that can be written to; choose another place")
