"""Groups of paraphrases, the same as those of sentence-transformers' `community_detection`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from st_paragram.tools.neighbors.exact import exact
from st_paragram.tools.neighbors.results import Neighbors, joined
from st_paragram.tools.neighbors.vectors import Rows, blocks

_QUERIES = 256  # rows compared with all others at a time

Group = NDArray[np.int64]


def find_groups(neighbors: Neighbors, rows: Rows, threshold: float, min_size: int) -> list[Group]:
    """Return groups of rows, largest first, each row in at most one.

    A group is a row, its center, and all rows whose cosine with it is at least the threshold. Rows
    become centers in the order of the sizes of their groups. Members of an earlier group are
    left out.

    Args:
        neighbors: The nearest other rows of n rows, (n, k). Rows whose k neighbors all reach the
            threshold are compared with all rows.
        rows: The n rows.
        threshold: Minimum cosine with the center.
        min_size: Minimum number of rows in a group.

    Returns:
        Numbers of the rows of each group, int64 (m,): the center, then the nearest first.
    """
    members = {}
    queries = np.arange(len(rows))
    while True:
        width = neighbors.indices.shape[1]
        counts = (neighbors.similarities >= threshold).sum(axis=1)
        is_full = (counts == width) & (width < len(rows) - 1)
        for number in np.flatnonzero((counts + 1 >= min_size) & ~is_full).tolist():
            members[int(queries[number])] = neighbors.indices[number, : counts[number]].copy()
        queries = queries[is_full]
        if not len(queries):
            break
        neighbors = joined(_wider(queries, rows, 4 * width))

    used = np.zeros(len(rows), bool)
    groups = []
    for center in sorted(members, key=lambda row: (-len(members[row]), row)):
        others = members[center]
        others = others[~used[others]]
        if not used[center] and len(others) + 1 >= min_size:
            group = np.concatenate([[center], others])
            used[group] = True
            groups.append(group)
    return sorted(groups, key=len, reverse=True)


def _wider(queries: Group, rows: Rows, k: int) -> Iterator[Neighbors]:
    """Yield the k nearest other rows of some rows, or all others, in blocks."""
    k = min(k, len(rows) - 1)
    parts = list(blocks(len(queries), _QUERIES))
    for begin, end in tqdm(parts, desc="groups", unit=" blocks", disable=None, leave=False):
        block = queries[begin:end]
        yield exact(rows.take(block), rows, k + 1).without_self(block)
