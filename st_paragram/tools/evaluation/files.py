r"""Read graded pairs and translations, plain or compressed; rows end at ``\n``."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from st_paragram.core.formatting import counted
from st_paragram.core.text.parallel import TextSource, read_pairs
from st_paragram.core.text.streams import read_lines
from st_paragram.core.text.tables import read_columns
from st_paragram.errors import TextError, short

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class GradedPairs:
    """Pairs of sentences, each with a similarity grade."""

    name: str
    first: list[str]
    second: list[str]
    grades: list[float]

    def __len__(self) -> int:
        """Return the number of pairs, n."""
        return len(self.grades)


@dataclass(frozen=True)
class Translations:
    """Sentences and their translations, in the same order."""

    name: str
    first: list[str]
    second: list[str]

    def __len__(self) -> int:
        """Return the number of pairs, n."""
        return len(self.first)


def inner_folder(data: str | Path, name: str) -> Path:
    """Return the subfolder of evaluation data with this name, or else the folder itself."""
    inner = Path(data) / name
    return inner if inner.is_dir() else Path(data)


def matching_files(folder: Path, pattern: str) -> dict[str, Path]:
    """Return the files of a folder whose names match a pattern, by the pattern's first group."""
    files = {}
    for path in sorted(folder.iterdir()):
        match = re.fullmatch(pattern, path.name)
        if match and path.is_file():
            files[match[1]] = path
    return files


def packed(path: Path) -> Path | None:
    """Return the path of a file or of its xz, gzip or bzip2 version; None if there is none."""
    for ending in ("", ".xz", ".gz", ".bz2"):
        candidate = path.with_name(path.name + ending)
        if candidate.is_file():
            return candidate
    return None


def read_cells(path: Path, minimum: int, maximum: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and cells of each row of a tab-separated file, which must not be empty."""
    expected = str(maximum) if minimum == maximum else f"{minimum} to {maximum}"
    number = 0
    for number, line in enumerate(read_lines(str(path)), 1):
        cells = line.split("\t")
        if not minimum <= len(cells) <= maximum:
            raise TextError(
                f"{path}: row {number} has {counted(len(cells), 'column')} ({short(line)}), not"
                f" {expected}; separate the columns with tabs"
            )
        yield number, cells
    if number == 0:
        raise TextError(f"{path}: the file is empty; give a file with at least one row")


def check_filled(path: str | Path, number: int, *cells: str) -> None:
    """Refuse a row with an empty cell."""
    for cell in cells:
        if not cell.strip():
            raise TextError(
                f"{path}: row {number}: an empty sentence or id; complete the row or remove it"
            )


def finite(cell: object) -> float | None:
    """Return the finite number in a cell of a table, or None."""
    if isinstance(cell, bool):
        return None
    try:
        value = float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None


def graded_pairs(
    name: str, rows: Iterable[tuple[int, Sequence[Any]]], score_column: int = 0
) -> GradedPairs:
    """Return the pairs in numbered rows of a score and two sentences; `name` is a file name."""
    pairs = GradedPairs(Path(name).stem, [], [], [])
    for number, cells in rows:
        first, second = [cells[column] for column in range(3) if column != score_column]
        grade = finite(cells[score_column])
        if grade is None:
            raise TextError(
                f"{name}: row {number}: column {score_column + 1} has"
                f" {short(cells[score_column])}, not a score; give one score and two sentences in"
                " each row"
            )
        check_filled(name, number, first, second)
        pairs.grades.append(grade)
        pairs.first.append(first)
        pairs.second.append(second)
    if len(set(pairs.grades)) < 2:
        raise TextError(
            f"{name}: {counted(len(pairs), 'pair')} with a single score; give pairs with different"
            " scores"
        )
    return pairs


def read_graded_pairs(path: str | Path, columns: Sequence[str] = ()) -> GradedPairs:
    """Read rows of a score and two sentences, in any order, or columns of a table, score first.

    The score is in the column with the most numbers. If only the first row has no number there, it
    is a header.
    """
    path = Path(path)
    rows: list[tuple[int, Sequence[Any]]] = []
    if columns:
        table = read_columns(str(path), columns[1:], others=columns[:1])
        for number, (first, second, score) in enumerate(table, 1):
            rows.append((number, (score, first, second)))
    else:
        rows.extend(read_cells(path, 3, 3))
    numbers = [0, 0, 0]
    for _, cells in rows:
        for column in range(3):
            numbers[column] += finite(cells[column]) is not None
    score_column = numbers.index(max(numbers))
    _, first_cells = rows[0]
    is_header = finite(first_cells[score_column]) is None
    if is_header and 0 < numbers[score_column] == len(rows) - 1:
        logger.warning(
            f"{path}: the first row has no number in column {score_column + 1}; it is treated as a"
            " header"
        )
        rows = rows[1:]
    return graded_pairs(str(path), rows, score_column)


def read_translations(source: TextSource, name: str) -> Translations:
    """Read sentences and their translations; none may be empty."""
    translations = Translations(name, [], [])
    for number, (first, second) in enumerate(read_pairs(source), 1):
        check_filled(source.name, number, first, second)
        translations.first.append(first)
        translations.second.append(second)
    return translations
