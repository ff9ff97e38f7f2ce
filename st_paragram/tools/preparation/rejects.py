"""Collect the rows that stages dropped into one file for each reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from st_paragram.core.files import atomic, output_lock, remove_unfinished
from st_paragram.tools.preparation.row_files import RowStage, rejects_file


def gather_rejects(stages: Iterable[RowStage], folder: Path) -> list[Path]:
    """Write the dropped rows to `<folder>/too-short.tsv`, `<folder>/duplicate.tsv`, ..., one file for each reason.

    The rows are as the steps of the cleaning saw them: in their original case, with single spaces, and repaired where
    a repair came first; further columns are there, too. For this, rows carry their original columns along between
    stages: the work folder is half as large again, the store is the same.

    Args:
        stages: The stages that drop rows, all of them done; they have left these rows in files.
        folder: The folder to write to; it is made if it does not exist.

    Returns:
        The files written, one for each reason that occurred.

    Raises:
        ParagramError: A file cannot be written, or another run is writing into the folder.
    """
    handles: dict[bytes, IO[bytes]] = {}
    with output_lock(folder), ExitStack() as stack:
        folder.mkdir(exist_ok=True)
        remove_unfinished(folder)
        for reason, row in _rejects(stages):
            if reason not in handles:
                handles[reason] = stack.enter_context(atomic(_file(folder, reason)))
            handles[reason].write(row)
    return [_file(folder, reason) for reason in handles]


def _rejects(stages: Iterable[RowStage]) -> Iterator[tuple[bytes, bytes]]:
    for stage in stages:
        for result in stage.results():
            with rejects_file(result).open("rb") as handle:
                for line in handle:
                    reason, _, row = line.partition(b"\t")
                    yield reason, row


def _file(folder: Path, reason: bytes) -> Path:
    return folder / f"{re.sub('[^a-z0-9]+', '-', reason.decode().lower())}.tsv"
