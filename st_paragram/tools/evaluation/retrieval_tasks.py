"""Tasks of retrieval: the queries of a set, and the candidates of this set or of a parallel set.

A set is a folder with `queries.tsv`, `corpus.tsv` and `qrels.tsv`, plain or compressed (see
`read_retrieval_set`). Sets in one folder that are named by languages, `xquad_r/es` and
`xquad_r/en`, are parallel: the queries of each set also search the English candidates
("xquad_r/es-en"). The folder of a language may have only queries: those of the English set in that
language, with the same ids. English queries without a translation are left out and counted: the
paper drops bad translations (Yang et al., ACL 2020, cross-lingual retrieval).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from st_paragram.core.text.streams import read_lines
from st_paragram.errors import EvaluationError, SettingsError, short
from st_paragram.tools.evaluation.files import packed
from st_paragram.tools.evaluation.request import Request
from st_paragram.tools.evaluation.retrieval_sets import (
    RetrievalSet,
    read_retrieval_set,
    translated,
)

SEMANTIC = "semantic-retrieval"
ANSWER = "answer-retrieval"
PIVOT = "en"  # language of the candidates that queries in all languages search
_LANGUAGE = re.compile(r"[a-z]{2}")


@dataclass(frozen=True)
class SetPair:
    """A set, and the set whose candidates its queries search: the same, or a parallel set."""

    asked: RetrievalSet
    answered: RetrievalSet
    limit: int | None = None  # number of queries; None for all

    def __post_init__(self) -> None:
        """Refuse sets with different ids of queries."""
        for key in self.asked.queries:
            if key not in self.answered.queries:
                raise EvaluationError(
                    f"query {short(key)} of {self.asked.name} is missing from"
                    f" {self.answered.name}; give parallel sets, with the same query ids in all"
                    " languages"
                )

    @property
    def is_crosslingual(self) -> bool:
        """Whether the candidates are from another set."""
        return self.answered is not self.asked

    @property
    def name(self) -> str:
        """Name of the set, "xquad_r/es", or "xquad_r/es-en" with other candidates."""
        if not self.is_crosslingual:
            return self.asked.name
        language = self.answered.name.rpartition("/")[2]
        return f"{self.asked.name}-{language}"

    @property
    def queries(self) -> dict[str, str]:
        """Id -> text of the first queries."""
        return dict(list(self.asked.queries.items())[: self.limit])

    @property
    def untranslated(self) -> int:
        """Number of queries of the parallel set that are missing from this set."""
        return len(self.answered.queries) - len(self.asked.queries)

    @property
    def relevant(self) -> dict[str, dict[int, int]]:
        """Id of a query -> row of a document -> grade, in the set of the candidates."""
        return dict(zip(self.answered.queries, self.answered.relevant, strict=True))


def find(data: Path, benchmark: str) -> dict[str, Path]:
    """Return name -> folder of the sets in a folder, up to two levels deep, or of itself.

    Names of sets for a language ("es") include the parent folder, "xquad_r/es". If the first query
    of a set is a document, the set belongs to semantic retrieval, and so do the queries in other
    languages next to it.
    """
    folders = [data]
    if not _part(data, "corpus"):
        folders = sorted([*data.glob("*"), *data.glob("*/*")])
    sets = {}
    for folder in folders:
        corpus = _part(folder, "corpus")
        if not corpus or not _part(folder, "qrels"):
            continue
        if _has_first_query(corpus) != (benchmark == SEMANTIC):
            continue
        name = folder.relative_to(data).as_posix() if folder != data else data.resolve().name
        if _LANGUAGE.fullmatch(name):
            name = f"{data.resolve().name}/{name}"
        sets[name] = folder
    return sets


def _part(folder: Path, name: str) -> Path | None:
    """Return a file of a set with queries, or else that of the English set next to it."""
    if not packed(folder / "queries.tsv"):
        return None
    own = packed(folder / f"{name}.tsv")
    if own or not _LANGUAGE.fullmatch(folder.name):
        return own
    return packed(folder.with_name(PIVOT) / f"{name}.tsv")


def _has_first_query(corpus: Path) -> bool:
    """Whether the first query of a set is one of its documents."""
    queries = packed(corpus.with_name("queries.tsv"))
    if queries is None:
        return False
    first = next(iter(read_lines(str(queries))), "").split("\t")
    return any(line.split("\t")[:2] == first for line in read_lines(str(corpus)))


def read_set_pairs(request: Request) -> Iterator[SetPair]:
    """Read the sets of the requested languages (default: all), with their candidates."""
    if request.limit is not None and request.limit < 1:
        raise SettingsError(f"the limit is {request.limit} queries; give 1 or more")
    folders = find(request.folder, request.benchmark)
    chosen = request.choose(
        folders,
        form="a set is a folder with queries.tsv, corpus.tsv and qrels.tsv",
        language=_language,
    )
    sets: dict[str, RetrievalSet] = {}
    for name, folder in chosen.items():
        asked = _read_set(name, folders, sets)
        if packed(folder / "corpus.tsv"):
            yield SetPair(asked, asked, request.limit)
        pivot = _pivot(name)
        if _language(name) not in ("", PIVOT) and pivot in folders:
            yield SetPair(asked, _read_set(pivot, folders, sets), request.limit)


def _read_set(
    name: str, folders: Mapping[str, Path], sets: dict[str, RetrievalSet]
) -> RetrievalSet:
    """Return a set, which is read once."""
    if name in sets:
        return sets[name]
    folder = folders[name]
    files = {}
    for part in ("queries", "corpus", "qrels"):
        files[part] = _part(folder, part) or folder
    if _has_only_queries(folder):
        english = _pivot(name)
        if english not in folders:
            raise EvaluationError(
                f"{folder}: only queries, and no English set next to it in the data; give --data"
                f" {folder.parent} with en/queries.tsv, en/corpus.tsv and en/qrels.tsv"
            )
        sets[name] = translated(_read_set(english, folders, sets), files["queries"], name)
    else:
        sets[name] = read_retrieval_set(**files, name=name)
    return sets[name]


def _has_only_queries(folder: Path) -> bool:
    return not packed(folder / "corpus.tsv") and not packed(folder / "qrels.tsv")


def _pivot(name: str) -> str:
    """Return the name of the English set next to a set, "xquad_r/en" for "xquad_r/es"."""
    return f"{name.rpartition('/')[0]}/{PIVOT}"


def _language(name: str) -> str:
    """Return the language in the name of a set, "es" for "xquad_r/es"; empty for other names."""
    last = name.rpartition("/")[2]
    return last if "/" in name and _LANGUAGE.fullmatch(last) else ""


def left_out(untranslated: int) -> str:
    """Say how many queries have no translation; empty for none."""
    if not untranslated:
        return ""
    return f" ({untranslated:,} without a translation left out)"


def rows_by_text(texts: list[str]) -> dict[str, set[int]]:
    """Return text -> the rows that have it."""
    rows: dict[str, set[int]] = {}
    for row, text in enumerate(texts):
        rows.setdefault(text, set()).add(row)
    return rows
