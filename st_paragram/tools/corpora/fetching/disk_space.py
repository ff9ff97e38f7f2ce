"""Check that the disk has enough space, before a download and before each of its files."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from st_paragram.errors import DownloadError
from st_paragram.tools.corpora.fetching.answer import TryAgain
from st_paragram.tools.corpora.fetching.corpus_file import CorpusFile
from st_paragram.tools.corpora.fetching.deadline import Deadline
from st_paragram.tools.corpora.fetching.http import RangeRefused, open_url
from st_paragram.tools.corpora.fetching.partial import Partial

SPARE = 1 << 28  # bytes of the disk that a file of unknown size must leave free


def check_disk_space(files: Sequence[CorpusFile], folder: Path, timeout: float) -> None:
    """Compare the size of files with the free space; the server is asked for sizes that are not known.

    Args:
        files: The files to fetch.
        folder: The folder to store them in; it exists.
        timeout: The longest wait for all answers together, in seconds.

    Raises:
        DownloadError: There is not enough space.
    """
    needed = 0
    patience: Deadline | None = Deadline(timeout)
    for file in files:
        size = file.size or file.about
        if size is None and patience is not None:
            try:
                size = _ask_size(file.url, patience.left())
            except (TryAgain, TimeoutError):
                patience = None  # the server is out of reach: each further question might take as long
        needed += max(0, (size or 0) - Partial(folder / file.filename).size())
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise DownloadError(
            f"{folder}: {len(files)} files of {needed / 2**30:.2f} GiB are to come, but only {free / 2**30:.2f} GiB "
            "are free; free disk space, choose another folder, or ask for fewer files"
        )


def check_disk_space_for(file: CorpusFile, size: int, folder: Path) -> None:
    """Compare the `size` bytes of a file that are still to come with the free space.

    Raises:
        DownloadError: There is not enough space.
    """
    if size > (free := shutil.disk_usage(folder).free):
        raise DownloadError(
            f"{file.label}: {size:,} bytes are to come, but only {free:,} are free in {folder}; free disk space, or "
            "choose another folder"
        )


def _ask_size(url: str, timeout: float) -> int | None:
    try:
        with open_url(url, timeout=timeout, method="HEAD") as answer:
            return answer.length
    except (DownloadError, RangeRefused):
        return None  # the download itself will say what is wrong
