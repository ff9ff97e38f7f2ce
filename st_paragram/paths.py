"""Where things are kept between runs."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/st_paragram`, or `~/.cache/st_paragram`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "st_paragram"
