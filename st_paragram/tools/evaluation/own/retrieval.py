"""Retrieval of the user's documents by queries: nDCG@10, recall and MRR@10, each a mean over queries.

Gains are the grades, as in trec_eval and BEIR: DCG@10 is the sum of grade / log2(rank + 1) over the first ten ranks,
nDCG@10 is its share of the DCG of the best order there is. A document with a query's id and text is the query itself,
and not a candidate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.errors import SettingsError
from st_paragram.tools.evaluation.base import Request
from st_paragram.tools.evaluation.models import score_each
from st_paragram.tools.evaluation.own.resampling import Floats, resampled_sums, resamples_for
from st_paragram.tools.evaluation.own.results import SEED, OwnRun, Sample, report_of, results_of
from st_paragram.tools.evaluation.own.retrieval_files import Grades, JudgedQueries, read_judged
from st_paragram.tools.evaluation.own.vectors import embedded, nearest_documents

MEASURES = ("nDCG@10", "recall@10", "recall@100", "MRR@10")
_SHORT, _LONG = 10, 100


@dataclass(frozen=True)
class OwnRetrievalRun(OwnRun):
    """Models on queries and documents."""

    benchmark: ClassVar[str] = "own-retrieval"


RUN = OwnRetrievalRun


def run(request: Request) -> OwnRetrievalRun:
    """Score models on the user's queries; errors as of `read_judged`, `embedded` and `score_each`.

    Raises:
        SettingsError: there are not three files.
    """
    if len(request.retrieval) != 3:
        raise SettingsError("queries, a corpus and qrels belong together; give --queries, --corpus and --qrels")
    queries, corpus, qrels = map(Path, request.retrieval)
    data = read_judged(queries, corpus, qrels)
    found = score_each(request.models, lambda model: score_retrieval(model, data), request.untrained)
    count, joined = resamples_for(len(data.queries)), np.concatenate(list(found.values()), axis=1)
    resampled = np.split(resampled_sums(joined, count, SEED) / len(joined), len(found), axis=1)
    samples = {
        model: {name: Sample(float(own[:, at].mean()), drawn[:, at]) for at, name in enumerate(MEASURES)}
        for (model, own), drawn in zip(found.items(), resampled, strict=True)
    }
    size, name = f"{len(data.queries):,} queries, {len(data.documents):,} documents", str(queries)
    return OwnRetrievalRun(results_of({name: samples}, MEASURES), {name: size}, data.notes, {name: count})


def score_retrieval(model: TextEncoder, data: JudgedQueries) -> Floats:
    """The measures of each query, (n, 4), by the model's embeddings of queries and of documents.

    Raises:
        EvaluationError: as `embedded`.
    """
    queries = embedded(model, list(data.queries.values()), "queries", model.encode_query)
    documents = embedded(model, list(data.documents.values()), "documents", model.encode_document)
    rows = {key: row for row, key in enumerate(data.documents)}
    own = [rows.get(key, -1) if data.documents.get(key) == text else -1 for key, text in data.queries.items()]
    found = nearest_documents(queries, documents, _LONG + any(row >= 0 for row in own), "documents")
    ranked = (each[each != row][:_LONG] for each, row in zip(found, own, strict=True))
    return np.array([measures(each.tolist(), of) for each, of in zip(ranked, data.relevant, strict=True)])


def measures(ranked: Sequence[int], relevant: Grades) -> tuple[float, float, float, float]:
    """nDCG@10, recall@10, recall@100 and the reciprocal rank of the first relevant document among ten.

    Args:
        ranked: rows of documents, best first.
        relevant: row of a document -> grade, 1 or more; at least one.
    """
    gains = [relevant.get(row, 0) for row in ranked[:_SHORT]]
    best = _discounted(sorted(relevant.values(), reverse=True)[:_SHORT])
    found = [sum(row in relevant for row in ranked[:cut]) / len(relevant) for cut in (_SHORT, _LONG)]
    reciprocal = next((1 / rank for rank, gain in enumerate(gains, 1) if gain), 0.0)
    return _discounted(gains) / best, found[0], found[1], reciprocal


def report(found: OwnRetrievalRun) -> Iterator[str]:
    """Tables, part by part."""
    reading = "The figures are means over the queries. The search compares each query with all documents, by cosine."
    yield from report_of(found, "Your queries: relevant documents among those found first", reading)


def _discounted(gains: Sequence[int]) -> float:
    weights: NDArray[np.float64] = 1 / np.log2(np.arange(len(gains)) + 2)
    return float(weights @ np.array(gains, np.float64))
