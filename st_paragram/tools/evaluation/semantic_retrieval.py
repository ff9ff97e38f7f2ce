"""Semantic retrieval: sentences look for those that mean the same, among many (Gillick et al. 2018; mUSE's task SR).

MAP@100, the mean over queries of average precision cut at 100, as trec_eval counts it (`map_cut_100`): the sum of the
precisions at those of the first 100 ranks that hold a relevant candidate, divided by the number R of all relevant
ones, also where R > 100. The query itself, by id or by its very text, is neither a candidate nor relevant.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.tables import MISSING, hundredths, markdown_table
from st_paragram.errors import EvaluationError, short
from st_paragram.tools.evaluation.base import Request
from st_paragram.tools.evaluation.correlation import embed
from st_paragram.tools.evaluation.models import score_each
from st_paragram.tools.evaluation.published import Source, rows
from st_paragram.tools.evaluation.retrieval_files import RetrievalSet, Rows, read_semantic_sets, semantic_folders
from st_paragram.tools.neighbors.exact import nearest_neighbors
from st_paragram.tools.neighbors.results import Vectors

CUT = 100
# MAP@100; questions of Quora and AskUbuntu, other candidates than any set here.
PUBLISHED = rows(
    Source.MUSE,
    "Quora AskUbuntu average",
    """
    USE_Trans: 89.1 42.3 65.7
    USE_CNN: 89.2 39.9 64.6
    """,
) + rows(Source.GILLICK, "Quora AskUbuntu average", "Dual encoder, no data of the domain: 87.5 37.3 62.4")
_BLOCK = 2048  # queries looked for at a time


@dataclass(frozen=True)
class SemanticScores:
    """A model on one set: numbers of queries and candidates, and the mean average precision, a share."""

    queries: int
    candidates: int
    mean_average_precision: float


@dataclass(frozen=True)
class SemanticResult:
    """A model on all sets: name -> scores, and the seconds that they took."""

    sets: dict[str, SemanticScores]
    seconds: float | None = None


@dataclass(frozen=True)
class SemanticRetrievalRun:
    """Models on semantic retrieval; precision is cut at this rank."""

    benchmark: ClassVar[str] = "semantic-retrieval"
    models: dict[str, SemanticResult]
    cut: int = CUT


RUN = SemanticRetrievalRun


def has_data(data: Path) -> bool:
    """Whether a folder of evaluation data has sets whose queries are candidates themselves."""
    return bool(semantic_folders(data))


def run(request: Request) -> SemanticRetrievalRun:
    """Score models on the sets of a folder, by their shared embedding (`encode`).

    Raises:
        EvaluationError: a query has no relevant candidate but itself, or a model's embeddings are not finite.
        SettingsError, TextError: as `read_semantic_sets`.
        ModelDirectoryError: a model is not there or cannot be read.
    """
    sets = read_semantic_sets(request.folder, request.limit)
    itself = [own_rows(each) for each in sets]
    return SemanticRetrievalRun(
        score_each(request.models, lambda model: _score(model, sets, itself), request.untrained)
    )


def own_rows(found: RetrievalSet) -> list[set[int]]:
    """Of each query the rows of the corpus that are the query itself.

    Raises:
        EvaluationError: nothing else is relevant to some query.
    """
    by_id = {key: row for row, key in enumerate(found.corpus)}
    by_text = defaultdict[str, set[int]](set)
    for row, text in enumerate(found.corpus.values()):
        by_text[text].add(row)
    own = [by_text.get(text, set()) | ({by_id[key]} if key in by_id else set()) for key, text in found.queries.items()]
    for key, same, relevant in zip(found.queries, own, found.relevant, strict=True):
        if same.issuperset(relevant.tolist()):
            raise EvaluationError(f"{found.name}: query {short(key)} finds only itself; drop it from queries")
    return own


def mean_average_precision(
    queries: Vectors, corpus: Vectors, relevant: Sequence[Rows], own: Sequence[set[int]], cut: int = CUT
) -> float:
    """Look for each query's nearest candidates by cosine, exactly; of equally near ones the earlier row comes first.

    Args:
        queries: float32 (n, D), rows of length 1.
        corpus: float32 (m, D), rows of length 1.
        relevant: of each query rows of the corpus, int64 (at least 1,).
        own: of each query the rows that are itself.
        cut: the last rank that counts.

    Raises:
        EvaluationError: embeddings are not finite.
    """
    wanted = min(cut + max(map(len, own)), len(corpus))
    total = 0.0
    for start in range(0, len(queries), _BLOCK):
        found = nearest_neighbors(queries[start : start + _BLOCK], corpus, wanted).indices
        for number, row in enumerate(found, start):
            ranked = row[~np.isin(row, list(own[number]))][:cut]
            total += average_precision(ranked, relevant[number][~np.isin(relevant[number], list(own[number]))])
    return total / len(queries)


def average_precision(ranked: Rows, relevant: Rows) -> float:
    """Sum of precisions at the ranks of relevant candidates, divided by the number of relevant ones.

    Args:
        ranked: candidates, best first, int64 (k,), cut already.
        relevant: all that are relevant, int64 (R,), R > 0.
    """
    hits: NDArray[np.bool_] = np.isin(ranked, relevant)
    precisions = np.cumsum(hits) / np.arange(1, len(ranked) + 1)
    return float(precisions[hits].sum() / len(relevant))


def report(found: SemanticRetrievalRun) -> Iterator[str]:
    """A table of all models, and one of published rows, part by part."""
    first = next(iter(found.models.values())).sets
    yield f"## Semantic retrieval: mean average precision of the first {found.cut} (MAP@{found.cut}) x 100\n"
    cells = []
    for name, result in found.models.items():
        figures = [scores.mean_average_precision for scores in result.sets.values()]
        mean = [hundredths(fmean(figures))] if len(figures) > 1 else []
        seconds = MISSING if result.seconds is None else f"{result.seconds:.1f}"
        cells.append([name, *map(hundredths, figures), *mean, seconds])
    yield markdown_table(["model", *first, *(["mean"] if len(first) > 1 else []), "seconds"], cells)
    sizes = (f"{name} has {of.queries:,} queries and {of.candidates:,} candidates." for name, of in first.items())
    yield f"\n{' '.join(sizes)}\n"
    columns = [column for column in PUBLISHED[0].scores if any(name.startswith(column.lower()) for name in first)]
    if not columns:
        return
    published = [[row.label, *(hundredths(row.scores[column]) for column in columns)] for row in PUBLISHED]
    yield "These figures are published, and were measured among other candidates:\n"
    yield markdown_table(["model", *columns], published)


def _score(model: TextEncoder, sets: Sequence[RetrievalSet], itself: Sequence[list[set[int]]]) -> SemanticResult:
    started, scores = time.perf_counter(), {}
    for each, own in zip(sets, itself, strict=True):
        texts = list(dict.fromkeys([*each.corpus.values(), *each.queries.values()]))
        places, vectors = {text: row for row, text in enumerate(texts)}, embed(model, texts)
        queries, corpus = (vectors[[places[text] for text in side.values()]] for side in (each.queries, each.corpus))
        precision = mean_average_precision(queries, corpus, each.relevant, own)
        scores[each.name] = SemanticScores(len(queries), len(corpus), precision)
    return SemanticResult(scores, time.perf_counter() - started)
