"""Files of tasks other than translation: questions and answers, responses, inference."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from st_paragram.core.files import file_for_folder
from st_paragram.core.formatting import counted
from st_paragram.core.text.streams import read_lines
from st_paragram.errors import TextError, short
from st_paragram.families.muse.settings import COLUMNS
from st_paragram.tools.cleaning.known_sentences import KnownSentences
from st_paragram.tools.evaluation.nli import NLI_LABELS

logger = logging.getLogger(__name__)

_FILE = re.compile(r"([a-z]{2,3}(?:[_-][A-Za-z]{2,4})?)\.tsv(?:\.gz|\.xz)?")
_COLUMN_COUNTS = {"qa": (2, 3), "response": (2,), "nli": (3,)}
_CHUNK = 4096  # rows read at a time


class Row(NamedTuple):
    """A row of a file; the label is -1 if the task has no labels."""

    first: str
    second: str
    context: str = ""
    label: int = -1


def task_files(folder: str | Path, task: str) -> dict[str, Path]:
    """Return the files `LANG.tsv`, `LANG.tsv.gz` or `LANG.tsv.xz` of a task, by language."""
    folder = Path(folder)
    if message := file_for_folder(folder):
        raise TextError(f"{message}; name the folder of the files LANG.tsv")
    if not folder.is_dir():
        raise TextError(f"{folder}: no such folder; name the folder of the files LANG.tsv")
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        match = _FILE.fullmatch(path.name)
        if not match:
            continue
        language = match[1]
        if language in files:
            raise TextError(f"{path}: same language as {files[language].name}; keep one of them")
        files[language] = path
    if not files:
        raise TextError(
            f"{folder}: no files LANG.tsv (or .gz, .xz); add files with rows `{COLUMNS[task]}`"
        )
    return files


def files_in(folder: str | Path, task: str, languages: Sequence[str]) -> dict[str, Path]:
    """Return the files of a task in English and other languages, by language."""
    files = task_files(folder, task)
    wanted = {"en", *languages}
    chosen = {language: path for language, path in files.items() if language in wanted}
    if not chosen:
        raise TextError(
            f"{folder}: no {task} file for {', '.join(sorted(wanted))}; add one, or leave the"
            " option out"
        )
    return chosen


def check_first_row(path: Path, task: str) -> None:
    """Refuse a file whose first row is wrong, or that has no rows."""
    for number, line in enumerate(read_lines(str(path)), 1):
        row = _row(line, task, f"{path}: row {number}")
        if row.first and row.second:
            return
    raise TextError(f"{path}: no rows `{COLUMNS[task]}`; give another file")


def read_texts(path: Path, task: str) -> Iterator[list[Row]]:
    """Yield the rows of a file, many at a time; white space within a text becomes single spaces.

    Rows with an empty text or a test sentence are left out, and counted in the log.
    """
    known = KnownSentences()
    lines = enumerate(read_lines(str(path)), 1)
    total = complete = kept = 0
    while chunk := list(islice(lines, _CHUNK)):
        rows = [_row(line, task, f"{path}: row {number}") for number, line in chunk]
        total += len(rows)
        rows = [row for row in rows if row.first and row.second]
        complete += len(rows)
        is_known = known([row.first for row in rows]) | known([row.second for row in rows])
        rows = [row for number, row in enumerate(rows) if not is_known[number]]
        kept += len(rows)
        if rows:
            yield rows
    _log_left_out(path, total - complete, total, "an empty text")
    _log_left_out(path, complete - kept, total, f"sentences of {known.name}")
    if not kept:
        left = " left" if total else ""
        raise TextError(f"{path}: no rows `{COLUMNS[task]}`{left}; give another file")


def _log_left_out(path: Path, count: int, total: int, reason: str) -> None:
    if count:
        logger.warning(f"{path}: {count:,} of {total:,} rows with {reason} left out")


def _row(line: str, task: str, place: str) -> Row:
    cells = [" ".join(cell.split()) for cell in line.split("\t")]
    if cells == [""]:
        return Row("", "")
    if len(cells) not in _COLUMN_COUNTS[task]:
        raise TextError(
            f"{place} has {counted(len(cells), 'column')}; rows of {task} are `{COLUMNS[task]}`"
        )
    if task == "nli":
        return Row(cells[1], cells[2], label=_label(cells[0], place))
    context = cells[2] if len(cells) > 2 else ""
    return Row(cells[0], cells[1], context)


def _label(text: str, place: str) -> int:
    """Return the index of a label in `NLI_LABELS`; a file may also have indices."""
    label = text.lower()
    if label in NLI_LABELS:
        return NLI_LABELS.index(label)
    if label in ("0", "1", "2"):
        return int(label)
    raise TextError(f"{place} has the label {short(text)}; labels are {', '.join(NLI_LABELS)}")
