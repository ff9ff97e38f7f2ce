"""Look for room on the disk before anything is fetched."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from st_paragram.corpora.fetching.corpus_file import CorpusFile
from st_paragram.corpora.fetching.http import RangeRefused, TryAgain, open_url
from st_paragram.corpora.fetching.partial import Partial
from st_paragram.errors import DownloadError


def check_space(files: Sequence[CorpusFile], folder: Path, timeout: float) -> None:
    """Compare what is to come with what is free; sizes that are not known are asked for, unless the network is out.

    Args:
        files: To be fetched.
        folder: Where to; it exists.
        timeout: Of a question, in seconds.

    Raises:
        DownloadError: There is not enough room.
    """
    needed = 0
    ask = True
    for file in files:
        size = file.size or file.about
        if size is None and ask:
            try:
                size = _ask_size(file.url, timeout)
            except TryAgain:
                ask = False  # each further question might take as long
        needed += max(0, (size or 0) - Partial(folder / file.filename).size())
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise DownloadError(
            f"{folder}: {needed / 2**30:.2f} GiB are to come ({len(files)} files), but {free / 2**30:.2f} GiB are "
            "free; make room, choose another folder, or ask for fewer files"
        )


def _ask_size(url: str, timeout: float) -> int | None:
    try:
        with open_url(url, timeout=timeout, method="HEAD") as answer:
            length = answer.headers.get("Content-Length", "")
            return int(length) if length.isdigit() else None
    except (DownloadError, RangeRefused):
        return None  # the transfer will say what is wrong
