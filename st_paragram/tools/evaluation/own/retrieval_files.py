"""Queries, documents and judgements as they are published: tab-separated rows, BEIR's JSON lines, TREC's qrels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from st_paragram.core.text.streams import read_lines
from st_paragram.core.text.tables import TABBED, read_columns, table_form
from st_paragram.core.words import counted
from st_paragram.errors import TextError, short
from st_paragram.tools.evaluation.retrieval_files import cells_of

Grades = dict[int, int]
_MOST = 1_000_000  # a grade


@dataclass(frozen=True)
class JudgedQueries:
    """Queries, all documents, and which of them are relevant.

    Args:
        queries: id -> text, of the queries that have a relevant document.
        documents: id -> text.
        relevant: of each query, row of a document -> grade, 1 or more.
        notes: what was left out.
    """

    queries: dict[str, str]
    documents: dict[str, str]
    relevant: list[Grades]
    notes: tuple[str, ...]


def read_judged(queries: Path, corpus: Path, qrels: Path) -> JudgedQueries:
    """Read queries, documents and judgements.

    Args:
        queries: rows `id TAB text`, or JSON lines (or another table, see `core.text.tables`) with `_id` and `text`.
        corpus: the same, with a `title` in tables, which is put before the text; JSON lines may lack it.
        qrels: rows of query id, document id and grade (BEIR, with names of columns or without); of query id, anything,
            document id and grade (TREC); or of both ids alone. A grade below 1 is of an irrelevant document.

    Raises:
        TextError: a file cannot be read, or (with file and row) a row is not of this form, an id occurs again, is
            unknown, or two ids occur together again; or no query has a relevant document.
    """
    asked, documents = _texts(queries, "query"), _texts(corpus, "document")
    judged = _judgements(qrels, asked, documents, (queries, corpus))
    relevant = {
        key: found
        for key in asked
        if (found := {row: grade for row, grade in judged.get(key, {}).items() if grade > 0})
    }
    if not relevant:
        raise TextError(f"{qrels}: no query has a document of grade 1 or more; give such judgements")
    notes = []
    if len(relevant) < len(asked):
        left_out = f"{len(asked) - len(relevant):,} of {len(asked):,} queries"
        notes.append(f"{queries}: {left_out} have no relevant document and are left out")
    if empty := sum(not text for text in documents.values()):
        notes.append(f"{corpus}: {counted(empty, 'document')} without text")
    return JudgedQueries({key: asked[key] for key in relevant}, documents, list(relevant.values()), tuple(notes))


def _texts(path: Path, what: str) -> dict[str, str]:
    """Id -> text; only documents may be empty, since published collections have such."""
    found: dict[str, str] = {}
    plain = table_form(str(path)) == TABBED
    for number, key, text in _tab_rows(path) if plain else _table_rows(path, what):
        if not key.strip() or (what == "query" and not text.strip()):
            raise TextError(f"{path}: row {number}: an empty {'text' if key.strip() else 'id'}; complete the row")
        if key in found:
            raise TextError(f"{path}: row {number}: id {short(key)} was there before; ids must differ")
        found[key] = text.strip()
    if not found:
        raise TextError(f"{path}: empty; give a file with at least one {what}")
    return found


def _tab_rows(path: Path) -> Iterator[tuple[int, str, str]]:
    for number, (key, text) in cells_of(path, 2, 2):
        yield number, key, text


def _table_rows(path: Path, what: str) -> Iterator[tuple[int, str, str]]:
    others = ["title"] if what == "document" else []
    for number, (key, text, *titles) in enumerate(read_columns(str(path), ["_id", "text"], others=others), 1):
        yield number, key, " ".join([*filter(None, titles), text])


def _judgements(
    path: Path, queries: dict[str, str], documents: dict[str, str], files: tuple[Path, Path]
) -> dict[str, Grades]:
    rows, found = {key: row for row, key in enumerate(documents)}, dict[str, Grades]()
    for number, query, document, grade in _judged_rows(path, queries):
        for key, known, file in ((query, queries, files[0]), (document, rows, files[1])):
            if key not in known:
                raise TextError(f"{path}: row {number}: id {short(key)} is not in {file}; correct one of the files")
        grades = found.setdefault(query, {})
        if rows[document] in grades:
            seen = f"{short(query)} and {short(document)} were there before"
            raise TextError(f"{path}: row {number}: {seen}; drop one of the rows")
        grades[rows[document]] = grade
    return found


def _judged_rows(path: Path, queries: dict[str, str]) -> Iterator[tuple[int, str, str, int]]:
    """Yield number of the row, ids and grade; the columns are separated by tabs, or by spaces if there is no tab."""
    for number, line in enumerate(read_lines(str(path)), 1):
        cells = line.split("\t") if "\t" in line else line.split()
        if len(cells) not in (2, 3, 4):
            raise TextError(f"{path}: row {number}: {short(line)}; give query id, document id and grade")
        query, document = cells[0], cells[2 if len(cells) == 4 else 1]
        try:
            grade: int | None = int(cells[-1]) if len(cells) > 2 else 1
        except ValueError:
            grade = None
        if grade is None and number == 1 and query not in queries:  # the names of the columns
            continue
        if grade is None or abs(grade) > _MOST:
            raise TextError(f"{path}: row {number}: the grade is {short(cells[-1])}; give a small whole number")
        yield number, query, document, grade
