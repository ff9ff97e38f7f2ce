"""Approximate search: the vectors of an index in lists by k-means, and the recall of searches."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.encoding.unit_embeddings import unit_embeddings
from st_paragram.core.extras import require
from st_paragram.tools.neighbors.exact import BestRows
from st_paragram.tools.neighbors.results import Vectors
from st_paragram.tools.neighbors.vectors import blocks
from st_paragram.tools.search import recall as recalls
from st_paragram.tools.search.nearest import (
    DISTANCE,
    MIN_CANDIDATES,
    nearest_in_lists,
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
    visited = recalls.numbers_of_lists(lists)
    row_ids = [_candidates(table, vectors, number) for number in visited]
    nearest, cosines = _cosines(table, vectors, np.stack(row_ids))
    shares = {}
    for number, scores in zip(visited, cosines, strict=True):
        best = -np.sort(-scores, axis=1)[:, : nearest.shape[1]]
        shares[number] = recalls.found_shares(best, nearest, kinds[known])
    return Measurement(wanted, count, lists, shares)


def _candidates(table: Any, queries: Vectors, lists: int) -> NDArray[np.int64]:
    """Return the row ids of the candidates of q queries in some lists, (q, c), -1 for none."""
    row_ids = np.full((len(queries), MIN_CANDIDATES), -1)
    for begin, end in blocks(len(queries), QUERIES):
        search = nearest_in_lists(table, queries[begin:end], lists, MIN_CANDIDATES)
        rows = search.select(["_distance"]).with_row_id(True).to_arrow()
        numbers = np.zeros(len(rows), np.int64)
        if end - begin > 1:
            numbers = rows["query_index"].to_numpy()
        for number in range(end - begin):
            ids = rows["_rowid"].to_numpy()[numbers == number]
            row_ids[begin + number, : len(ids)] = ids
    return row_ids


def _cosines(
    table: Any, queries: Vectors, row_ids: NDArray[np.int64]
) -> tuple[Vectors, NDArray[np.float32]]:
    """Compare queries with all vectors, which are read once.

    Args:
        table: n sentences.
        queries: Unit vectors, (q, D).
        row_ids: v sets of candidates, (v, q, c), -1 for none.

    Returns:
        The cosines of the ten nearest sentences, best first, (q, min(n, 10)), and of the
        candidates, (v, q, c), minus infinity for none.
    """
    best = BestRows(len(queries), min(recalls.NEAREST, table.count_rows()))
    cosines = np.full(row_ids.size, -np.inf, np.float32)
    order = np.argsort(row_ids, axis=None)
    wanted = row_ids.ravel()[order]
    numbers = order // row_ids.shape[2] % len(queries)
    for vectors, ids in unit_blocks(table):
        products = queries @ vectors.T
        best.see(0, products, 0)
        sorter = np.argsort(ids)
        begin, end = np.searchsorted(wanted, [ids[sorter[0]], ids[sorter[-1]] + 1])
        columns = sorter[np.searchsorted(ids, wanted[begin:end], sorter=sorter)]
        is_match = ids[columns] == wanted[begin:end]
        matches = np.arange(begin, end)[is_match]
        cosines[order[matches]] = products[numbers[matches], columns[is_match]]
    return best.similarities, cosines.reshape(row_ids.shape)
