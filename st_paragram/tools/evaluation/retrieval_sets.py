"""Read retrieval sets: queries, documents, and judgments of which documents are relevant."""

from __future__ import annotations

import logging
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path

from st_paragram.core.text.streams import read_lines
from st_paragram.core.text.tables import TABBED, read_columns, table_form
from st_paragram.errors import TextError, short
from st_paragram.tools.evaluation.files import check_filled, finite, read_cells

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RetrievalSet:
    """Queries, the documents that they search, and relevance judgments."""

    name: str  # such as "quora_sr" or "xquad_r/es"
    queries: dict[str, str]  # id -> text, for the n queries that have a relevant document
    corpus: dict[str, str]  # id -> text, for m documents
    contexts: list[str]  # text around each document, such as its paragraph; empty if there is none
    relevant: list[dict[int, int]]  # for each query, row of a document -> grade, 1 or more


class TextFile:
    """The texts of a file by their ids.

    Attributes:
        texts: Id -> text.
        rows: Id -> number of the text, from 0.
    """

    def __init__(self, path: Path, texts: dict[str, str]) -> None:
        """Number the texts."""
        self.texts = texts
        self.rows = {key: row for row, key in enumerate(texts)}
        self._path = path

    def row(self, key: str, place: str) -> int:
        """Return the row of an id in a judgment at some place."""
        if key not in self.rows:
            raise TextError(
                f"{place}: id {short(key)} is not in {self._path}; correct one of the files"
            )
        return self.rows[key]


@dataclass(frozen=True)
class Judgment:
    """The grade of a document for a query; a grade below 1 means that it is irrelevant."""

    query: int  # row
    document: int  # row
    grade: int


def read_retrieval_set(queries: Path, corpus: Path, qrels: Path, name: str = "") -> RetrievalSet:
    """Read queries, documents and relevance judgments.

    Queries are rows `id TAB text`, or JSON lines (or another table) with `_id` and `text`.
    Documents may also have a third column, the context, or a `title`, which is put before the text.
    Judgments are rows of query id, document id and grade (BEIR, with or without a header), of query
    id, any value, document id and grade (TREC), or of the two ids alone.
    """
    texts = read_texts(queries)
    documents, contexts = _read_documents(corpus)
    relevant: list[dict[int, int]] = [{} for _ in texts]
    for judgment in read_judgments(qrels, TextFile(queries, texts), TextFile(corpus, documents)):
        if judgment.grade > 0:
            relevant[judgment.query][judgment.document] = judgment.grade
    if not any(relevant):
        raise TextError(
            f"{qrels}: no query has a document with grade 1 or more; add judgments with such grades"
        )
    without_documents = relevant.count({})
    if without_documents:
        logger.warning(
            f"{queries}: {without_documents:,} of {len(texts):,} queries have no relevant document"
            " and are left out"
        )
    return RetrievalSet(
        name=name or str(queries),
        queries=dict(compress(texts.items(), relevant)),
        corpus=documents,
        contexts=contexts,
        relevant=[grades for grades in relevant if grades],
    )


def translated(english: RetrievalSet, queries: Path, name: str) -> RetrievalSet:
    """Return a set with queries in another language, from rows `id TAB text`.

    Ids are those of the English set, of which some may be missing. Rows with other ids are left out
    and counted in the log.
    """
    texts = read_texts(queries)
    has_translation = [key in texts for key in english.queries]
    keys = list(compress(english.queries, has_translation))
    if not keys:
        raise TextError(
            f"{queries}: no id is that of a query of {english.name} with a relevant document; use"
            " the ids of that set"
        )
    if len(keys) < len(texts):
        logger.warning(
            f"{queries}: {len(texts) - len(keys):,} of {len(texts):,} queries have no relevant"
            f" document in {english.name} and are left out"
        )
    return RetrievalSet(
        name=name,
        queries={key: texts[key] for key in keys},
        corpus=english.corpus,
        contexts=english.contexts,
        relevant=list(compress(english.relevant, has_translation)),
    )


def read_texts(path: Path) -> dict[str, str]:
    """Return id -> text of rows `id TAB text`, or of a table; no text may be empty."""
    texts: dict[str, str] = {}
    rows: Iterator[tuple[int, Sequence[str]]]
    if table_form(str(path)) == TABBED:
        rows = read_cells(path, 2, 2)
    else:
        rows = enumerate(read_columns(str(path), ["_id", "text"]), 1)
    for number, (key, text) in rows:
        check_filled(path, number, key, text)
        _check_new(path, number, key, texts)
        texts[key] = text.strip()
    return texts


def _read_documents(path: Path) -> tuple[dict[str, str], list[str]]:
    """Return id -> text of the documents, and their contexts.

    A document may be empty, as in some published collections.
    """
    texts: dict[str, str] = {}
    contexts = []
    for number, key, text, context in _document_rows(path):
        check_filled(path, number, key)
        _check_new(path, number, key, texts)
        texts[key] = text.strip()
        contexts.append(context)
    return texts, contexts


def _document_rows(path: Path) -> Iterator[tuple[int, str, str, str]]:
    """Yield the number, id, text and context of each document."""
    if table_form(str(path)) == TABBED:
        for number, cells in read_cells(path, 2, 3):
            context = cells[2] if len(cells) == 3 else ""
            yield number, cells[0], cells[1], context
        return
    table = read_columns(str(path), ["_id", "text"], others=["title"])
    for number, (key, text, title) in enumerate(table, 1):
        yield number, key, f"{title} {text}" if title else text, ""


def _check_new(path: Path, number: int, key: str, keys: Container[str]) -> None:
    if key in keys:
        raise TextError(f"{path}: row {number}: duplicate id {short(key)}; make the ids unique")


def read_judgments(path: Path, queries: TextFile, documents: TextFile) -> Iterator[Judgment]:
    """Yield the judgments of a file.

    Columns are separated by tabs, or by spaces in rows without tabs.
    """
    judged = set()
    for number, line in enumerate(read_lines(str(path)), 1):
        place = f"{path}: row {number}"
        cells = line.split("\t") if "\t" in line else line.split()
        if len(cells) not in (2, 3, 4):
            raise TextError(f"{place} is {short(line)}; give query id, document id and grade")
        query = cells[0]
        document = cells[2] if len(cells) == 4 else cells[1]
        grade = 1.0 if len(cells) == 2 else finite(cells[-1])
        is_header = number == 1 and grade is None and query not in queries.texts
        if is_header:
            continue
        if grade is None or not grade.is_integer():
            raise TextError(f"{place}: the grade is {short(cells[-1])}; give a whole number")
        judgment = Judgment(queries.row(query, place), documents.row(document, place), int(grade))
        pair = (judgment.query, judgment.document)
        if pair in judged:
            raise TextError(
                f"{place} repeats the pair {short(query)}, {short(document)}; remove one row"
            )
        judged.add(pair)
        yield judgment
