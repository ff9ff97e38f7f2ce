"""Groups of paraphrases, the same as those of sentence-transformers' `community_detection`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from st_paragram.tools.neighbors.exact import exact
from st_paragram.tools.neighbors.results import Neighbors
from st_paragram.tools.neighbors.vectors import Rows, blocks

DEFAULT_THRESHOLD = 0.75
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
    counts = (neighbors.similarities >= threshold).sum(axis=1)
    members = {}
    width = neighbors.indices.shape[1]
    is_full = (counts == width) & (width < len(rows) - 1)
    for row in np.flatnonzero((counts + 1 >= min_size) & ~is_full).tolist():
        members[row] = neighbors.indices[row, : counts[row]]
    full = np.flatnonzero(is_full)
    parts = list(blocks(len(full), _QUERIES))
    for begin, end in tqdm(parts, desc="groups", unit=" blocks", disable=None, leave=False):
        members.update(_near(full[begin:end], rows, threshold, width))

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


def _near(queries: Group, rows: Rows, threshold: float, width: int) -> dict[int, Group]:
    """Return for each query, a row, all other rows whose cosine with it reaches the threshold."""
    near = {}
    while len(queries):
        width = min(4 * width, len(rows) - 1)
        found = exact(rows.take(queries), rows, width + 1).without_self(queries)
        counts = (found.similarities >= threshold).sum(axis=1)
        is_full = (counts == width) & (width < len(rows) - 1)
        for number in np.flatnonzero(~is_full).tolist():
            near[int(queries[number])] = found.indices[number, : counts[number]].copy()
        queries = queries[is_full]
    return near
