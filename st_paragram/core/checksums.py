"""SHA-256 of many files at once."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from st_paragram.core.files import content_digest

_THREADS = 4
_FEW_BYTES = 1 << 24  # not worth a thread


def content_digests(paths: Sequence[Path]) -> list[str]:
    """SHA-256 of each file's bytes, in hexadecimal digits, some files at a time.

    Raises:
        OSError: a file cannot be read.
    """
    if sum(path.stat().st_size for path in paths) > _FEW_BYTES:
        try:
            with ThreadPoolExecutor(_THREADS) as pool:
                return list(pool.map(content_digest, paths))
        except RuntimeError:  # no thread can be started; one after another will do
            pass
    return list(map(content_digest, paths))
