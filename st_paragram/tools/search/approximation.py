"""Approximate search: the vectors of an index in lists by k-means, and the recall of searches."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.encoding.unit_embeddings import unit_embeddings
from st_paragram.core.extras import require
from st_paragram.tools.neighbors.results import Vectors
from st_paragram.tools.neighbors.vectors import blocks
from st_paragram.tools.search import recall as recalls
from st_paragram.tools.search.nearest import (
    DISTANCE,
    MIN_CANDIDATES,
    Request,
    find_candidates,
    unit_blocks,
)
from st_paragram.tools.search.recall import Measurement
from st_paragram.tools.search.table import dimension, write_note

QUERIES = 64  # searched at a time


def make_exact(table: Any) -> None:
    """Remove the lists of a table."""
    for index in table.list_indices():
        if list(index.columns) == ["vector"]:
            table.drop_index(index.name)
            write_note(table, "vector", "recall", "")


def make_approximate(
    table: Any, wanted: float, encoder: TextEncoder, query_method: str
) -> Measurement:
    """Group the vectors of a table into lists, and measure the recall for some numbers of lists."""
    lists = max(1, int(table.count_rows() ** 0.5) // 8)
    # Codes of one bit per dimension select the candidates, so that visiting many lists takes little
    # time. LanceDB has codes only for whole bytes.
    kinds = require("lancedb.index", "search")
    kind = kinds.IvfFlat if dimension(table) % 8 else kinds.IvfRq
    config = kind(DISTANCE, num_partitions=lists, max_iterations=10, sample_rate=64)
    table.create_index("vector", config=config)
    measurement = _measure(table, wanted, lists, encoder, query_method)
    write_note(table, "vector", "recall", measurement.to_json())
    return measurement


def _measure(
    table: Any, wanted: float, lists: int, encoder: TextEncoder, query_method: str
) -> Measurement:
    count = table.count_rows()
    sample = np.random.default_rng(0).permutation(count)[: recalls.SAMPLE]
    rows = table.take_offsets(np.sort(sample).tolist()).select(["text"]).to_arrow()
    by_kind = recalls.held_out_queries(rows["text"].to_pylist())
    queries = list(chain.from_iterable(by_kind.values()))
    kinds = np.repeat(list(by_kind), [len(texts) for texts in by_kind.values()])
    vectors, known = unit_embeddings(encoder, queries, query_method)
    vectors = vectors[known]
    nearest = recalls.nearest_scores(vectors, unit_blocks(table))
    shares = {}
    for visited in recalls.numbers_of_lists(lists):
        scores = _best_scores(table, vectors, visited, nearest.shape[1])
        shares[visited] = recalls.found_shares(scores, nearest, kinds[known])
    return Measurement(wanted, count, lists, shares)


def _best_scores(table: Any, queries: Vectors, lists: int, k: int) -> Vectors:
    """Return the cosines of queries with the k sentences found in some lists, best first, (q, k).

    Missing sentences have minus infinity.
    """
    scores = np.full((len(queries), k), -np.inf, np.float32)
    request = Request(k, threshold=-np.inf)
    for begin, end in blocks(len(queries), QUERIES):
        _, ranked = find_candidates(table, queries[begin:end], MIN_CANDIDATES, request, lists)
        for number, (_, cosines) in enumerate(ranked, begin):
            best = cosines[:k]
            scores[number, : len(best)] = best
    return scores
