"""Ids of many texts in one array, with counts or offsets that mark where texts begin."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.arrays import Integers


def starts(counts: NDArray[Any]) -> NDArray[Any]:
    """Return the sums of the first 0, 1, ... n counts, of the same type: (n + 1,)."""
    result = np.zeros(len(counts) + 1, dtype=counts.dtype)
    np.cumsum(counts, out=result[1:])
    return result


def take(
    ids: NDArray[Any], begins: Integers, counts: Integers
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Extract texts from flat ids by beginnings and lengths, (n,): ids and offsets, (n + 1,)."""
    offsets = starts(counts)
    return ids[np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], counts)], offsets


def truncate(ids: NDArray[Any], counts: Integers, length: int) -> tuple[NDArray[Any], Integers]:
    """Keep at most the first `length` ids of each text: return ids (total',) and counts (N,)."""
    if len(counts) == 0 or counts.max() <= length:
        return ids, counts
    place = np.arange(len(ids)) - np.repeat(starts(counts)[:-1], counts)
    return ids[place < length], np.minimum(counts, length)


def drop_unknown(
    ids: NDArray[Any], counts: Integers, unknown_id: int
) -> tuple[NDArray[Any], Integers]:
    """Drop unknown ids: return ids and offsets (N + 1,).

    A text without known ids becomes one unknown id.
    """
    known = ids != unknown_id
    if counts.all() and known.all():
        return ids, starts(counts)
    kept = np.bincount(np.repeat(np.arange(len(counts)), counts)[known], minlength=len(counts))
    offsets = starts(np.maximum(kept, 1))
    result = np.full(offsets[-1], unknown_id, dtype=ids.dtype)
    result[np.repeat(kept > 0, np.maximum(kept, 1))] = ids[known]
    return result, offsets
