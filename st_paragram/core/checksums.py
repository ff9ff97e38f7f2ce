"""SHA-256 of many files at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from st_paragram.core.files import FileDescription, content_digest
from st_paragram.errors import ParagramError, one_line

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
        except RuntimeError:  # no thread can be started; one after another is enough
            pass
    return list(map(content_digest, paths))


def check_content(
    folder: Path, files: Mapping[str, FileDescription], stated: str, error: type[ParagramError], advice: str
) -> None:
    """Compare the content of files with their SHA-256; reads them all.

    Args:
        folder: Where they are.
        files: The files by their names.
        stated: The file that has their digests, for messages.
        error: To raise.
        advice: How to get files that are sound, for messages.

    Raises:
        ParagramError: A file holds something else, or cannot be read.
    """
    try:
        found = content_digests([folder / name for name in files])
    except OSError as reason:
        raise error(f"{folder}: cannot be read ({one_line(reason)}); {advice}") from reason
    for (name, written), sha256 in zip(files.items(), found, strict=True):
        if sha256 != written.sha256:
            raise error(f"{folder / name}: damaged, its SHA-256 is not the one in {stated}; {advice}")
