"""Exact search, and measures of rankings: MAP, nDCG, recall and reciprocal ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from st_paragram.tools.neighbors.exact import nearest_neighbors
from st_paragram.tools.neighbors.results import Vectors


def search(
    queries: Vectors, corpus: Vectors, itself: Sequence[set[int]], cut: int
) -> list[list[int]]:
    """Return the nearest corpus rows of each query by cosine (exact search).

    Args:
        queries: Vectors of length 1, float32 (n, D), or zeros, which find nothing.
        corpus: The same for documents, (m, D); zeros are not found.
        itself: For each query, rows that it must not find.
        cut: Number of rows.
    """
    nearest: list[list[int]] = [[] for _ in queries]
    query_rows = np.flatnonzero(queries.any(axis=1))
    corpus_rows = np.flatnonzero(corpus.any(axis=1))
    if len(query_rows) == 0 or len(corpus_rows) == 0:
        return nearest
    k = min(cut + max(len(rows) for rows in itself), len(corpus_rows))
    neighbors = nearest_neighbors(queries[query_rows], corpus[corpus_rows], k)
    documents = corpus_rows[neighbors.indices].tolist()
    for place, query in enumerate(query_rows.tolist()):
        nearest[query] = [row for row in documents[place] if row not in itself[query]][:cut]
    return nearest


def average_precision(ranked: Sequence[int], relevant: set[int]) -> float:
    """Return the sum of the precisions at the ranks of relevant documents, divided by their number.

    Agrees with trec_eval, e.g. with `map_cut_100` for 100 ranked rows, even if more than 100
    documents are relevant.
    """
    is_hit = np.isin(ranked, list(relevant))
    precisions = np.cumsum(is_hit) / np.arange(1, len(ranked) + 1)
    return float(precisions[is_hit].sum() / len(relevant))


def ranking_measures(ranked: Sequence[int], relevant: Mapping[int, int]) -> dict[str, float]:
    """Return nDCG@10, recall@10, recall@100 and MRR@10 of one query.

    Gains are the grades, as in trec_eval and BEIR: DCG@10 is the sum of grade / log2(rank + 1) over
    the first ten ranks, and nDCG@10 is its share of the DCG@10 of the best possible order. MRR@10
    is the reciprocal rank of the first relevant document in the top ten, or 0.

    Args:
        ranked: Rows of documents, best first.
        relevant: Row of a document -> grade.
    """
    gains = [relevant.get(row, 0) for row in ranked[:10]]
    best_gains = sorted(relevant.values(), reverse=True)[:10]
    return {
        "nDCG@10": _discounted(gains) / _discounted(best_gains),
        "recall@10": _recall(ranked[:10], relevant),
        "recall@100": _recall(ranked[:100], relevant),
        "MRR@10": _reciprocal_rank(gains),
    }


def _discounted(gains: Sequence[int]) -> float:
    discounts = 1 / np.log2(np.arange(len(gains)) + 2)
    return float(np.array(gains, np.float64) @ discounts)


def _recall(ranked: Sequence[int], relevant: Mapping[int, int]) -> float:
    hits = [row for row in ranked if row in relevant]
    return len(hits) / len(relevant)


def _reciprocal_rank(gains: Sequence[int]) -> float:
    for rank, gain in enumerate(gains, 1):
        if gain:
            return 1 / rank
    return 0.0
