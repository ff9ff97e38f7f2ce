"""Second stage: for each row the one before it that has the same key.

Keys are sorted a range at a time, so memory does not grow with the text. Links are on disk and mapped: a file for each
column of keys, int32 (n,), -1 where no row with the same key comes before.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Links = NDArray[np.int32]
Keys = NDArray[np.uint64]

SORTED_ROWS = 1 << 22  # rows whose keys are sorted at a time: 150 MB


def link(
    keys_of: Callable[[int], Keys],
    blocks: int,
    count: int,
    ranks: NDArray[np.int32] | None,
    path: Path,
    most: int = SORTED_ROWS,
) -> Links:
    """Link the rows that have the same key.

    Args:
        keys_of: Gives the keys of a block of rows, uint64; 0 for none.
        blocks: Number of blocks.
        count: Number of rows, n.
        ranks: Place of each row in the order in which rows come, int32 (n,); None: they come as they are.
        path: File to write.
        most: Rows to sort at a time, about.

    Returns:
        The links, which may be changed: the file is mapped.
    """
    links: Any = np.lib.format.open_memmap(path, "w+", np.int32, (count,))
    links[:] = -1
    ranges = -(-count // most)
    width = np.uint64((1 << 64) // ranges + 1) if ranges > 1 else None
    for number in range(ranges):
        rows, keys = _in_range(keys_of, blocks, width, number)
        order = np.argsort(keys, kind="stable") if ranks is None else np.lexsort((ranks[rows], keys))
        rows, keys = rows[order], keys[order]
        same = np.flatnonzero(keys[1:] == keys[:-1])
        links[rows[same + 1]] = rows[same]
    return np.asarray(links)


def _in_range(
    keys_of: Callable[[int], Keys], blocks: int, width: np.uint64 | None, number: int
) -> tuple[NDArray[np.int32], Keys]:
    """The rows whose keys are in a range, int32, and the keys."""
    rows, found, first = [np.zeros(0, np.int32)], [np.zeros(0, np.uint64)], 0
    for block in range(blocks):
        keys = keys_of(block)
        inside = np.flatnonzero(keys if width is None else (keys > 0) & (keys // width == number))
        rows.append((inside + first).astype(np.int32))
        found.append(keys[inside])
        first += len(keys)
    return np.concatenate(rows), np.concatenate(found)
