"""Cosines of rows that a search has found, in float64 and rounded once.

They are always summed in the same order, so they are the same bit by bit in both directions, for equal vectors wherever
these are, and with or without the compiled kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.native import kernels
from st_paragram.core.threads import usable_threads
from st_paragram.tools.neighbors.results import NONE, Vectors

_LANES = 16
_NUMBERS = 1 << 21  # of double precision at a time


def candidate_cosines(
    queries: Vectors, shards: Sequence[NDArray[Any]], lengths: Vectors, rows: NDArray[np.int64]
) -> Vectors:
    """Cosine of each query with the rows given for it.

    Args:
        queries: float32 (n, D), of length 1.
        shards: The corpus, arrays (s, D) of float32, float16 or int8, of equal numbers of rows but for the last one.
        lengths: Of all rows of the corpus, float32 (m,): what each is divided by.
        rows: Rows of the corpus, int64 (n, c); -1 for none.

    Returns:
        float32 (n, c), with -1 where there is no row.
    """
    result = np.full(rows.shape, NONE, dtype=np.float32)
    native = kernels()
    if native is None or not all(shard.flags.aligned for shard in shards):
        _fill(np.ascontiguousarray(queries), shards, lengths, rows, result)
    else:
        bits = [shard.view(np.uint16) if shard.dtype == np.float16 else shard for shard in shards]
        rows = np.ascontiguousarray(rows)
        native.candidate_cosines(np.ascontiguousarray(queries), bits, lengths, rows, result, usable_threads())
    return result


def _fill(
    queries: Vectors, shards: Sequence[NDArray[Any]], lengths: Vectors, rows: NDArray[np.int64], result: Vectors
) -> None:
    """What the kernel of the same name does."""
    step = max(1, _NUMBERS // max(1, rows.shape[1] * queries.shape[1]))
    for begin in range(0, len(rows), step):
        block = slice(begin, begin + step)
        distinct, where = np.unique(rows[block], return_inverse=True)
        vectors = divided(shards, lengths, np.maximum(distinct, 0))
        found = sums_in_lanes(queries[block, None], vectors[where.reshape(rows[block].shape)])
        result[block] = np.where(rows[block] < 0, NONE, found)


def divided(shards: Sequence[NDArray[Any]], lengths: Vectors, rows: NDArray[np.int64]) -> Vectors:
    """Rows of the corpus by their numbers (c,), divided by their lengths: float32 (c, D)."""
    numbers = rows // len(shards[0])
    vectors = np.empty((len(rows), shards[0].shape[1]), np.float32)
    for number in np.unique(numbers):
        own = numbers == number
        vectors[own] = shards[number][rows[own] - number * len(shards[0])]
    vectors /= lengths[rows, None]
    return vectors


def sums_in_lanes(one: Vectors, other: Vectors) -> NDArray[np.float64]:
    """Products of vectors along the last axis; component d is added to lane d % 16, then the lanes by halves."""
    dim = other.shape[-1]
    lanes = np.zeros((*np.broadcast_shapes(one.shape[:-1], other.shape[:-1]), _LANES))
    for begin in range(0, dim, _LANES):
        end = min(begin + _LANES, dim)
        lanes[..., : end - begin] += one[..., begin:end].astype(np.float64) * other[..., begin:end]
    while lanes.shape[-1] > 1:
        half = lanes.shape[-1] // 2
        lanes = lanes[..., :half] + lanes[..., half:]
    return lanes[..., 0]
