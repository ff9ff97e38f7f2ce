"""Pairs of sentences with grades of similarity, and the three ways in which such pairs are written to files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from st_paragram.errors import TextError

LOWEST, HIGHEST = 0.0, 5.0


@dataclass(frozen=True)
class GradedPairs:
    """Pairs of sentences with a grade of similarity, 0 (unrelated) to 5 (same meaning).

    Args:
        name: of the set.
        first: n sentences.
        second: n sentences.
        grades: n numbers.
        skipped: rows of the file that were left out because they have no grade.
    """

    name: str
    first: list[str]
    second: list[str]
    grades: list[float]
    skipped: int = 0

    def __len__(self) -> int:
        """The number of pairs, n."""
        return len(self.grades)


def concatenate(name: str, parts: Iterable[GradedPairs]) -> GradedPairs:
    """All pairs of several sets as one set."""
    whole = GradedPairs(name, [], [], [])
    for part in parts:
        whole.first.extend(part.first)
        whole.second.extend(part.second)
        whole.grades.extend(part.grades)
    return whole


def graded_rows(name: str, rows: Iterable[tuple[float, str, str]]) -> GradedPairs:
    """Pairs from rows (grade, sentence1, sentence2), e.g. of a data set of the hub, with the checks of files.

    Raises:
        TextError: a row is refused as by `read_graded_pairs`.
    """
    pairs = GradedPairs(name, [], [], [])
    for number, (grade, first, second) in enumerate(rows, start=1):
        _add(pairs, str(grade), (first, second), f"{name}: row {number}")
    return _checked(pairs, name)


def read_graded_pairs(path: str | Path) -> GradedPairs:
    r"""Read rows `grade TAB sentence1 TAB sentence2`, split at `\n` alone.

    Raises:
        TextError: the file is missing or empty, or a row (given by its number) is not of this form, has an empty
            sentence or a grade outside 0 .. 5, or all grades are alike.
    """
    path = Path(path)
    pairs = GradedPairs(path.stem, [], [], [])
    for number, row in _rows(path):
        cells = row.split("\t")
        if len(cells) != 3:
            raise TextError(f"{path}: row {number}: expected `grade TAB sentence TAB sentence`, saw {row[:60]!r}")
        _add(pairs, cells[0], cells[1:], f"{path}: row {number}")
    return _checked(pairs, path)


def read_senteval_pairs(sentences: str | Path, gold: str | Path, name: str | None = None) -> GradedPairs:
    r"""Read the SemEval tasks' own form: `STS.input.X.txt`, rows `sentence TAB sentence`, and `STS.gs.X.txt`, grades.

    Rows whose grade is empty were never graded; they are left out and counted. Cells behind the second sentence (2017
    names the sources there) are ignored.

    Raises:
        TextError: a file is missing or empty, the files are of unequal length, or a row is refused as by
            `read_graded_pairs`.
    """
    sentences, gold = Path(sentences), Path(gold)
    rows, grades = list(_rows(sentences)), list(_rows(gold))
    if len(rows) != len(grades):
        raise TextError(f"{sentences} has {len(rows)} rows, {gold} has {len(grades)}; they must belong together")
    skipped = sum(not grade.strip() for _, grade in grades)
    pairs = GradedPairs(name or sentences.name.removeprefix("STS.input.").removesuffix(".txt"), [], [], [], skipped)
    for (number, row), (_, grade) in zip(rows, grades, strict=True):
        if not grade.strip():
            continue
        cells = row.split("\t")
        if len(cells) < 2:
            raise TextError(f"{sentences}: row {number}: expected `sentence TAB sentence`, saw {row[:60]!r}")
        _add(pairs, grade, cells[:2], f"row {number} of {sentences} and {gold}")
    return _checked(pairs, sentences)


def read_benchmark_pairs(path: str | Path) -> GradedPairs:
    r"""Read the STS Benchmark's release, `sts-test.csv`: cells between TABs, of which 5 to 7 are grade and sentences.

    The cells before them say where a pair comes from; cells behind them are ignored. Nothing is quoted in these files.

    Raises:
        TextError: as `read_graded_pairs`.
    """
    path = Path(path)
    pairs = GradedPairs(path.stem, [], [], [])
    for number, row in _rows(path):
        cells = row.split("\t")
        if len(cells) < 7:
            raise TextError(f"{path}: row {number}: expected at least 7 cells between TABs, saw {len(cells)}")
        _add(pairs, cells[4], cells[5:7], f"{path}: row {number}")
    return _checked(pairs, path)


def _rows(path: Path) -> Iterator[tuple[int, str]]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TextError(f"{path}: no such file of graded pairs ({error.strerror})") from error
    for number, row in enumerate(data.removesuffix(b"\n").split(b"\n"), start=1):
        try:
            yield number, row.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise TextError(f"{path}: row {number}: not UTF-8 ({error.reason}); convert the file") from error


def _add(pairs: GradedPairs, grade: str, sentences: Sequence[str], where: str) -> None:
    try:
        value = float(grade)
    except ValueError as error:
        raise TextError(f"{where}: a grade was expected, saw {grade[:60]!r}") from error
    if not LOWEST <= value <= HIGHEST:
        raise TextError(f"{where}: the grade is {grade}; it must be in {LOWEST:g} .. {HIGHEST:g}")
    if not all(sentence.strip() for sentence in sentences):
        raise TextError(f"{where}: an empty sentence; complete the row or take it out")
    pairs.grades.append(value)
    pairs.first.append(sentences[0])
    pairs.second.append(sentences[1])


def _checked(pairs: GradedPairs, source: str | Path) -> GradedPairs:
    if len(set(pairs.grades)) < 2:
        raise TextError(f"{source}: {len(pairs)} pairs of one grade; a correlation needs different grades")
    return pairs
