"""Who may read a file that was written."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path


def follow_umask(paths: Iterable[Path]) -> None:
    """Give files the mode that a file opened for writing has where they are: what the umask leaves of 0666.

    safetensors writes through a temporary file since 0.8, and leaves what it writes readable by its owner alone.
    """
    for path in list(paths):
        sample = path.with_name(f".{path.name}.{os.getpid()}.part")  # asking for the umask would mean changing it
        try:
            sample.touch(exist_ok=False)
            path.chmod(stat.S_IMODE(sample.stat().st_mode))
        finally:
            sample.unlink(missing_ok=True)
