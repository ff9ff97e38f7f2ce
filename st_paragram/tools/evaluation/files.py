r"""Read graded pairs, translations, retrieval sets and comparable texts, plain or compressed; rows
end at ``\n``.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.extras import require
from st_paragram.core.formatting import counted
from st_paragram.core.text.parallel import TextSource, read_pairs
from st_paragram.core.text.streams import read_lines
from st_paragram.core.text.tables import TABBED, read_columns, table_form
from st_paragram.errors import EvaluationError, TextError, one_line, short

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


@dataclass(frozen=True)
class RetrievalSet:
    """Queries, the documents that they search, and relevance judgments."""

    name: str  # such as "quora_sr" or "xquad_r/es"
    queries: dict[str, str]  # id -> text, for the n queries that have a relevant document
    corpus: dict[str, str]  # id -> text, for m documents
    contexts: list[str]  # text around each document, such as its paragraph; empty if there is none
    relevant: list[dict[int, int]]  # for each query, row of a document -> grade, 1 or more


@dataclass(frozen=True)
class ComparableTexts:
    """Two texts in which some sentences are translations of each other."""

    name: str  # prefix of the file names, e.g. "zh-en.sample"
    source: dict[str, str]  # id -> sentence
    target: dict[str, str]
    # source and target rows that are translations, (g, 2), without repeated pairs
    gold: NDArray[np.int64]


def inner_folder(data: str | Path, name: str) -> Path:
    """Return the subfolder of evaluation data with this name or, if there is none, the folder
    itself.
    """
    inner = Path(data) / name
    return inner if inner.is_dir() else Path(data)


def packed(path: Path) -> Path | None:
    """Return the path of a file or of its xz, gzip or bzip2 version, whichever exists; None if none
    exists.
    """
    places = (path.with_name(path.name + ending) for ending in ("", ".xz", ".gz", ".bz2"))
    return next((place for place in places if place.is_file()), None)


def read_cells(path: Path, least: int, most: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and cells of each row of a tab-separated file; it must have at least one
    row.
    """
    number, expected = 0, str(most) if least == most else f"{least} to {most}"
    for number, line in enumerate(read_lines(str(path)), 1):
        cells = line.split("\t")
        if not least <= len(cells) <= most:
            seen = f"{len(cells)} columns" if len(cells) > 1 else f"1 column ({short(line)})"
            raise TextError(
                f"{path}: row {number} has {seen}, not {expected}; separate the columns with tabs"
            )
        yield number, cells
    if not number:
        raise TextError(f"{path}: the file is empty; give a file with at least one row")


def _check_filled(path: str | Path, number: int, *texts: str) -> None:
    if not all(text.strip() for text in texts):
        raise TextError(
            f"{path}: row {number}: an empty sentence or id; complete the row or remove it"
        )


def graded_pairs(
    name: str, rows: Sequence[tuple[int, Sequence[Any]]], score: int = 0
) -> GradedPairs:
    """Return the pairs in numbered rows of a score and two sentences; `score` is the index of the
    score's column.
    """
    pairs = GradedPairs(Path(name).stem, [], [], [])
    for number, cells in rows:
        value, texts = (
            _number(cells[score]),
            [cell for place, cell in enumerate(cells) if place != score],
        )
        if value is None or not math.isfinite(value):
            seen = (
                f"{name}: row {number}: column {score + 1} has {short(cells[score])}, not a score"
            )
            raise TextError(f"{seen}; give one score and two sentences in each row")
        _check_filled(name, number, *texts)
        pairs.grades.append(value)
        pairs.first.append(texts[0])
        pairs.second.append(texts[1])
    if len(set(pairs.grades)) < 2:
        raise TextError(
            f"{name}: {counted(len(pairs), 'pair')} with a single score; give pairs with different"
            " scores"
        )
    return pairs


def read_graded_pairs(path: str | Path, columns: Sequence[str] = ()) -> GradedPairs:
    """Read rows of a score and two sentences, in any order, or the given columns of a table, the
    score first.

    The score is in the column with the most numbers. If only the first row has no number there, it
    is a header.
    """
    path = Path(path)
    if columns:
        table = read_columns(str(path), columns[1:], others=columns[:1])
        rows: list[Any] = [
            (number, (value, *texts)) for number, (*texts, value) in enumerate(table, 1)
        ]
    else:
        rows = list(read_cells(path, 3, 3))
    numbers = [[_number(cells[place]) is not None for _, cells in rows] for place in range(3)]
    score = max(range(3), key=lambda place: sum(numbers[place]))
    if len(rows) > 1 and not numbers[score][0] and all(numbers[score][1:]):
        logger.warning(
            f"{path}: the first row has no number in column {score + 1}; it is treated as a header"
        )
        rows = rows[1:]
    return graded_pairs(str(path), rows, score)


def read_senteval_pairs(sentences: Path, gold: Path) -> GradedPairs:
    """Read the format of the STS tasks, `STS.input.X.txt` and `STS.gs.X.txt`; skip rows that were
    never graded.
    """
    rows, grades = list(read_cells(sentences, 2, 9)), list(read_lines(str(gold)))
    if len(rows) != len(grades):
        raise TextError(
            f"{sentences} has {len(rows)} rows, {gold} has {len(grades)}; give files of the same"
            " task"
        )
    graded = (
        (number, [grade, *cells[:2]]) for (number, cells), grade in zip(rows, grades, strict=True)
    )
    return graded_pairs(
        str(sentences), [(number, cells) for number, cells in graded if cells[0].strip()]
    )


def _number(cell: object) -> float | None:
    try:
        return None if isinstance(cell, bool) else float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def read_translations(source: TextSource, name: str) -> Translations:
    """Read sentences and their translations; none may be empty."""
    pairs = list(read_pairs(source))
    for number, pair in enumerate(pairs, 1):
        _check_filled(source.name, number, *pair)
    return Translations(name, [first for first, _ in pairs], [second for _, second in pairs])


def read_retrieval_set(queries: Path, corpus: Path, qrels: Path, name: str = "") -> RetrievalSet:
    """Read queries, documents and relevance judgments.

    Queries are rows `id TAB text`, or JSON lines (or another table) with `_id` and `text`.
    Documents may also have a third column, the context, or a `title`, which is put before the text.
    Judgments are rows of query id, document id and grade (BEIR, with or without a header), of query
    id, any value, document id and grade (TREC), or of the two ids alone. A document with a grade
    below 1 is irrelevant.
    """
    all_queries, documents = _texts(queries, 2), _texts(corpus, 3)
    relevant: dict[str, dict[int, int]] = {}
    for query, document, grade in _judgments(qrels, (queries, all_queries), (corpus, documents)):
        if grade > 0:
            relevant.setdefault(query, {})[document] = grade
    kept = {key: text for key, (text, _) in all_queries.items() if key in relevant}
    if not kept:
        raise TextError(
            f"{qrels}: no query has a document with grade 1 or more; add judgments with such grades"
        )
    if left_out := (total := len(all_queries)) - len(kept):
        logger.warning(
            f"{queries}: {left_out:,} of {total:,} queries have no relevant document and are"
            " left out"
        )
    texts = {key: text for key, (text, _) in documents.items()}
    contexts = [context for _, context in documents.values()]
    return RetrievalSet(
        name or str(queries), kept, texts, contexts, [relevant[key] for key in kept]
    )


def _texts(path: Path, most: int) -> dict[str, tuple[str, str]]:
    """Return id -> text and context; documents (`most` is 3) may be empty, as in some published
    collections.
    """
    if table_form(str(path)) == TABBED:
        rows: Iterator[Any] = ((number, *cells) for number, cells in read_cells(path, 2, most))
    else:
        table = read_columns(str(path), ["_id", "text"], others=["title"] if most == 3 else [])
        rows = (
            (n, key, " ".join([*filter(None, titles), text]))
            for n, (key, text, *titles) in enumerate(table, 1)
        )
    texts: dict[str, tuple[str, str]] = {}
    for number, key, text, *context in rows:
        _check_filled(path, number, key, text if most == 2 else key)
        if key in texts:
            raise TextError(f"{path}: row {number}: duplicate id {short(key)}; make the ids unique")
        texts[key] = text.strip(), context[0] if context else ""
    return texts


def _judgments(
    path: Path, queries: tuple[Path, Collection[str]], corpus: tuple[Path, Iterable[str]]
) -> Iterator[tuple[str, int, int]]:
    """Yield query id, document row and grade; `queries` and `corpus` are files and the ids in them.

    Columns are separated by tabs, or by spaces in rows without tabs.
    """
    rows, judged = {key: row for row, key in enumerate(corpus[1])}, set[tuple[str, str]]()
    for number, line in enumerate(read_lines(str(path)), 1):
        cells = line.split("\t") if "\t" in line else line.split()
        if len(cells) not in (2, 3, 4):
            raise TextError(
                f"{path}: row {number} is {short(line)}; give query id, document id and grade"
            )
        query, document = cells[0], cells[2 if len(cells) == 4 else 1]
        grade = 1.0 if len(cells) == 2 else _number(cells[-1])
        if grade is None and number == 1 and query not in queries[1]:  # a header
            continue
        if grade is None or not grade.is_integer():
            raise TextError(
                f"{path}: row {number}: the grade is {short(cells[-1])}; give a whole number"
            )
        for key, known, file in ((query, queries[1], queries[0]), (document, rows, corpus[0])):
            if key not in known:
                raise TextError(
                    f"{path}: row {number}: id {short(key)} is not in {file}; correct one of the"
                    " files"
                )
        if (query, document) in judged:
            raise TextError(
                f"{path}: row {number} repeats the pair {short(query)}, {short(document)}; remove"
                " one row"
            )
        judged.add((query, document))
        yield query, rows[document], int(grade)


def read_comparable_texts(prefix: str | Path, languages: str) -> ComparableTexts:
    """Read BUCC's format: PREFIX.zh and PREFIX.en, rows `id TAB sentence`, and PREFIX.gold, rows
    `zh id TAB en id`.
    """
    first, second, gold = (Path(f"{prefix}.{ending}") for ending in (*languages.split("-"), "gold"))
    if absent := next((path for path in (first, second, gold) if not path.is_file()), None):
        raise EvaluationError(
            f"{absent}: no such file; BUCC's files are named like zh-en.sample.zh, .en and .gold"
        )
    source, target = (
        {key: text for key, (text, _) in _texts(path, 2).items()} for path in (first, second)
    )
    rows = {key: row for row, key in enumerate(source)}
    pairs = [
        (rows[key], row) for key, row, _ in _judgments(gold, (first, source), (second, target))
    ]
    return ComparableTexts(
        Path(prefix).name, source, target, np.array(pairs, np.int64).reshape(-1, 2)
    )


def fetch(name: str, data: str, revision: str, subset: str | None, split: str) -> Any:
    """Load a data set from the Hugging Face hub."""
    load_dataset = require("datasets", "eval", "loading data from the hub").load_dataset
    try:
        return load_dataset(data, subset, split=split, revision=revision)
    except Exception as error:  # datasets passes on the exceptions of many libraries
        reason = one_line(str(error).split("\n")[0])
        seen = f"{name}: cannot load {data} from the hub ({type(error).__name__}: {reason})"
        raise EvaluationError(f"{seen}; give a folder with the data: --data DIR") from error
