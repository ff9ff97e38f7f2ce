"""Retrieval sets: folders of queries, candidates, and which of them belong together.

    queries.tsv    id TAB text
    corpus.tsv     id TAB text [TAB context], the text around a candidate, such as its paragraph
    qrels.tsv      query id TAB id of the corpus, a row for each relevant candidate

Each plain, or compressed as .tsv.xz, .tsv.gz or .tsv.bz2; rows end at line feeds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.files import write_text
from st_paragram.core.text.streams import read_lines
from st_paragram.errors import EvaluationError, SettingsError, TextError, short

Rows = NDArray[np.int64]

_LANGUAGE = re.compile(r"[a-z]{2}")
_PARTS = ("queries", "corpus", "qrels")
_ENDINGS = (".tsv", ".tsv.xz", ".tsv.gz", ".tsv.bz2")


@dataclass(frozen=True)
class RetrievalSet:
    """Queries, and the candidates among which they look.

    Attributes:
        name: its folder's, below the folder of evaluation data ("quora_sr", "xquad_r/es").
        queries: id -> text, n of them.
        corpus: id -> text, m candidates.
        contexts: of the candidates, m texts, empty where there is none.
        relevant: of each query the rows of the corpus that it should find, ascending, int64 (at least 1,).
    """

    name: str
    queries: dict[str, str]
    corpus: dict[str, str]
    contexts: tuple[str, ...]
    relevant: tuple[Rows, ...]

    def first(self, count: int | None) -> RetrievalSet:
        """The set with the first `count` queries and all candidates; None: with all queries."""
        queries = dict(list(self.queries.items())[:count])
        return RetrievalSet(self.name, queries, self.corpus, self.contexts, self.relevant[:count])


def part(folder: Path, name: str) -> Path | None:
    """The file of a set called queries, corpus or qrels, plain or compressed; None if there is none."""
    places = (folder / f"{name}{ending}" for ending in _ENDINGS)
    return next((place for place in places if place.is_file()), None)


def retrieval_folders(data: str | Path) -> dict[str, Path]:
    """The retrieval sets in a folder, two levels deep, by name; the folder itself may be one.

    Those named by a language ("es") have the folder around them in their names, "xquad_r/es".
    """
    data = Path(data)
    if _is_set(data):
        return {data.resolve().name: data}
    places = sorted(place for pattern in ("*", "*/*") for place in data.glob(pattern) if _is_set(place))
    names = (place.relative_to(data).as_posix() for place in places)
    whole = (f"{data.resolve().name}/{name}" if _LANGUAGE.fullmatch(name) else name for name in names)
    return dict(zip(whole, places, strict=True))


def language_of(name: str) -> str:
    """The language that a set of several is named by, "es" of "xquad_r/es"; empty if it is not."""
    last = name.rpartition("/")[2]
    return last if "/" in name and _LANGUAGE.fullmatch(last) else ""


def semantic_folders(data: str | Path) -> dict[str, Path]:
    """Those sets whose queries are candidates themselves: equivalent sentences look for each other.

    Raises:
        TextError: a file cannot be read, or its rows have not the columns they should.
    """
    return {name: folder for name, folder in retrieval_folders(data).items() if _asks_itself(folder)}


def answer_folders(data: str | Path) -> dict[str, Path]:
    """Those sets whose queries are questions, and whose candidates are sentences; errors as of `semantic_folders`."""
    return {name: folder for name, folder in retrieval_folders(data).items() if not _asks_itself(folder)}


def read_semantic_sets(data: str | Path, limit: int | None = None) -> list[RetrievalSet]:
    """The sets of a folder whose queries are candidates, with their first `limit` queries, or all.

    Raises:
        SettingsError: the limit is below 1.
        EvaluationError: there are no such sets.
        TextError: as `read_retrieval_set`.
    """
    if limit is not None and limit < 1:
        raise SettingsError(f"a limit of {limit} queries; give 1 or more")
    if not (folders := semantic_folders(data)):
        needs = "a set is a folder of queries.tsv, corpus.tsv, which has the queries, and qrels.tsv"
        raise EvaluationError(f"{data}: no sets of sentences that look for each other; {needs}")
    return [read_retrieval_set(folder, name).first(limit) for name, folder in folders.items()]


def read_retrieval_set(folder: str | Path, name: str = "") -> RetrievalSet:
    """Read and check the three files of a set.

    Args:
        folder: of the files.
        name: of the set; that of the folder if there is none.

    Raises:
        EvaluationError: a file is missing.
        TextError: a file is empty or cannot be read, or (with file and row) a row has other columns, an empty cell, an
            id seen before, an unknown id, or two ids seen together before; or a query has no relevant candidate.
    """
    folder = Path(folder)
    queries = {key: text for key, text, _ in _texts(_file(folder, "queries"), 2)}
    ids, texts, contexts = zip(*_texts(_file(folder, "corpus"), 3), strict=True)
    corpus = dict(zip(ids, texts, strict=True))
    relevant = _judgements(_file(folder, "qrels"), queries, corpus)
    return RetrievalSet(name or folder.resolve().name, queries, corpus, contexts, relevant)


def write_retrieval_set(found: RetrievalSet, folder: str | Path) -> Path:
    """Write a set as `read_retrieval_set` reads it; returns the folder, which is made."""
    folder, ids = Path(folder), list(found.corpus)
    corpus = ((key, text, around) for (key, text), around in zip(found.corpus.items(), found.contexts, strict=True))
    judged = ((query, ids[row]) for query, rows in zip(found.queries, found.relevant, strict=True) for row in rows)
    for name, table in zip(_PARTS, (found.queries.items(), corpus, judged), strict=True):
        write_text(folder / f"{name}.tsv", "".join("\t".join(row) + "\n" for row in table))
    return folder


def _is_set(folder: Path) -> bool:
    return all(part(folder, name) for name in _PARTS)


def _asks_itself(folder: Path) -> bool:
    query = next(_texts(_file(folder, "queries"), 2))
    return any(row[:2] == query[:2] for row in _texts(_file(folder, "corpus"), 3))


def _file(folder: Path, name: str) -> Path:
    if (path := part(folder, name)) is not None:
        return path
    raise EvaluationError(f"{folder}: no {name}.tsv; a retrieval set has queries.tsv, corpus.tsv and qrels.tsv")


def _texts(path: Path, most: int) -> Iterator[tuple[str, str, str]]:
    """Yield id, text and context, empty if there is none."""
    seen = set[str]()
    for number, cells in cells_of(path, 2, most):
        key, text = cells[:2]
        if not (key.strip() and text.strip()):
            raise TextError(f"{path}: row {number}: an empty {'text' if key.strip() else 'id'}; complete the row")
        if key in seen:
            raise TextError(f"{path}: row {number}: id {short(key)} was there before; ids must differ")
        seen.add(key)
        yield key, text, cells[2] if len(cells) > 2 else ""


def _judgements(path: Path, queries: dict[str, str], corpus: dict[str, str]) -> tuple[Rows, ...]:
    found = {key: dict[int, None]() for key in queries}
    places = {key: row for row, key in enumerate(corpus)}
    for number, (query, candidate) in cells_of(path, 2, 2):
        for key, known, name in ((query, queries, "queries"), (candidate, corpus, "corpus")):
            if key not in known:
                raise TextError(f"{path}: row {number}: id {short(key)} is not in {name}.tsv; correct one of the files")
        if places[candidate] in found[query]:
            raise TextError(f"{path}: row {number}: {short(query)} and {short(candidate)} were there before; drop one")
        found[query][places[candidate]] = None
    if (alone := next((key for key, rows in found.items() if not rows), None)) is not None:
        raise TextError(f"{path}: no row for query {short(alone)}; give its relevant candidates, or drop the query")
    return tuple(np.array(sorted(rows), np.int64) for rows in found.values())


def cells_of(path: Path, least: int, most: int) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield number and cells of every row of a tab-separated file.

    Raises:
        TextError: the file is empty or cannot be read, or a row has other than `least` to `most` cells.
    """
    number, expected = 0, str(most) if least == most else f"{least} to {most}"
    for number, line in enumerate(read_lines(str(path)), 1):
        cells = line.split("\t")
        if not least <= len(cells) <= most:
            seen = f"{len(cells)} columns" if len(cells) > 1 else f"1 column, {short(line)}"
            raise TextError(f"{path}: row {number} has {seen}, where {expected} are expected; put tabs between them")
        yield number, cells
    if not number:
        raise TextError(f"{path}: empty; give a file with at least one row")
