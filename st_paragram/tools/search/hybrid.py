"""Hybrid search: one ranking from the nearest sentences and the sentences that share words.

Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009) gives a sentence the sum of
1 / (60 + rank) over both rankings. The ranking by words is BM25, by LanceDB.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from st_paragram.core.extras import require
from st_paragram.tools.neighbors.results import Vectors
from st_paragram.tools.neighbors.vectors import Rows
from st_paragram.tools.search.memory import VectorMemory
from st_paragram.tools.search.nearest import Request, hits_of, search_table, stored_vectors
from st_paragram.tools.search.table import retried, update_table, visible_columns
from st_paragram.tools.search.text_search import Hit

DEPTH = 100  # sentences of each ranking, at least
_CONSTANT = 60


def index_words(table: Any) -> None:
    """Index the words of a table's sentences, regardless of case and accents.

    The words are those of Unicode's ICU, which has dictionaries for Chinese, Japanese and Thai.
    """
    kinds = require("lancedb.index", "search")
    # LanceDB's stems and stop words are those of one language
    config = kinds.FTS(base_tokenizer="icu", stem=False, remove_stop_words=False)
    table.create_index("text", config=config)


def search_hybrid(
    table: Any, texts: Sequence[str], queries: Vectors, request: Request, memory: VectorMemory
) -> list[list[Hit]]:
    """Return the hits of q queries, given as texts and as unit vectors, (q, D)."""
    deep = replace(request, k=max(DEPTH, request.k))
    nearest = search_table(table, queries, deep, memory)
    hits = []
    for number, text in enumerate(texts):
        query = queries[number : number + 1]
        matches = retried(partial(find_words, table, text, query, deep))
        hits.append(fused(nearest[number], matches)[: request.k])
    return hits


def find_words(table: Any, text: str, query: Vectors, request: Request) -> list[Hit]:
    """Return the sentences that share words with a text, best first by BM25, then by lines.

    Their scores are the cosines with the text's vector, (1, D).
    """
    update_table(table)
    words = require("lancedb.query", "search").MatchQuery(text, "text")
    columns = [*visible_columns(table), "_score"]
    search = table.search(words).select(columns).limit(request.k)
    if request.condition is not None:
        search = search.where(request.condition)
    rows = search.to_arrow(timeout=request.timeout)
    rows = rows.sort_by([("_score", "descending"), ("line", "ascending")])
    vectors = Rows([stored_vectors(rows["vector"].combine_chunks())])
    cosines = vectors.cosines(query, np.arange(len(rows))[None])[0]
    is_hit = cosines >= request.threshold
    return hits_of(rows.drop_columns(["vector"]).filter(is_hit), cosines[is_hit])


def fused(*rankings: Sequence[Hit]) -> list[Hit]:
    """Join rankings by reciprocal ranks, ties by cosines, then in the order of lines."""
    hits = {}
    sums = dict[int, float]()
    for ranking in rankings:
        for rank, hit in enumerate(ranking, 1):
            hits[hit.line] = hit
            sums[hit.line] = sums.get(hit.line, 0.0) + 1 / (_CONSTANT + rank)
    return sorted(hits.values(), key=lambda hit: (-sums[hit.line], -hit.score, hit.line))
