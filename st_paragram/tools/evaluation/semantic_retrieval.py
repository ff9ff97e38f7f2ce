"""Semantic retrieval: search for sentences with the same meaning.

Gillick, Presta and Tomar 2018; mUSE's task SR (Yang et al., ACL 2020). The queries are documents
themselves, and the measure is MAP@100. `retrieval_tasks` describes the sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from statistics import fmean

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.errors import EvaluationError, short
from st_paragram.tools.evaluation import report
from st_paragram.tools.evaluation.ranking import average_precision, search
from st_paragram.tools.evaluation.request import Request
from st_paragram.tools.evaluation.retrieval_tasks import (
    SEMANTIC,
    SetPair,
    find,
    left_out,
    read_set_pairs,
    rows_by_text,
)
from st_paragram.tools.evaluation.scores import Score, embed
from st_paragram.tools.neighbors.results import Vectors

__all__ = ["find", "read", "score", "tables"]

CUT = 100  # ranks that count


@dataclass(frozen=True)
class SemanticTask:
    """Queries of one set, and candidates from the same set or another set."""

    name: str  # "quora_sr", or "quora/es-en" with candidates from another set
    queries: tuple[str, ...]  # n texts
    corpus: tuple[str, ...]  # m texts
    relevant: list[set[int]]  # for each query, the correct candidates
    itself: list[set[int]]  # for each query, the candidates that are the query itself
    untranslated: int = 0  # queries of the other set that are missing, and not scored


def read(request: Request) -> list[SemanticTask]:
    """Read the tasks of a folder in the requested languages."""
    return [make_task(sets) for sets in read_set_pairs(request)]


def make_task(sets: SetPair) -> SemanticTask:
    """Return the task of the queries of a set.

    A candidate with the id or the text of a query is the query itself.
    """
    queries = sets.queries
    corpus = sets.answered.corpus
    rows = {key: row for row, key in enumerate(corpus)}
    same_text = rows_by_text(list(corpus.values()))
    judgments = sets.relevant
    relevant = []
    itself = []
    for key, text in queries.items():
        own = set(same_text.get(text, ()))
        if key in rows:
            own.add(rows[key])
        right = judgments[key].keys() - own
        if not right:
            raise EvaluationError(
                f"{sets.asked.name}: query {short(key)} is its only relevant document; remove it"
            )
        itself.append(own)
        relevant.append(right)
    return SemanticTask(
        name=sets.name,
        queries=tuple(queries.values()),
        corpus=tuple(corpus.values()),
        relevant=relevant,
        itself=itself,
        untranslated=sets.untranslated,
    )


def score(name: str, model: TextEncoder, tasks: list[SemanticTask]) -> Iterator[Score]:
    """Yield the MAP@100 of each task; each set is embedded once."""

    @cache
    def vectors(texts: tuple[str, ...]) -> Vectors:
        return embed(model, texts)

    for task in tasks:
        ranked = search(vectors(task.queries), vectors(task.corpus), task.itself, cut=CUT)
        precisions = []
        for rows, relevant in zip(ranked, task.relevant, strict=True):
            precisions.append(average_precision(rows, relevant))
        yield Score(
            model=name,
            benchmark=SEMANTIC,
            set=task.name,
            measure=f"MAP@{CUT}",
            value=fmean(precisions),
            items=len(set(task.queries)),
            untranslated=task.untranslated,
        )


def tables(scores: list[Score], tasks: list[SemanticTask]) -> Iterator[str]:
    """Yield one table."""
    sizes = []
    for task in tasks:
        counts = f"{len(task.queries):,} queries and {len(task.corpus):,} documents"
        sizes.append(f"{task.name} has {counts}{left_out(task.untranslated)}.")
    title = f"Semantic retrieval: mean average precision (MAP@{CUT}) x 100"
    yield from report.section(title, scores, note=" ".join(sizes))
