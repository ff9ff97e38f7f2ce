"""Which sentences are in an index already.

Sentences are compared by their bytes. Their length, first and last bytes, gathered for many at once, show which few
have to be compared: nothing has to be stored for this, and a million are looked through in a fraction of a second.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from st_paragram.tools.search.sentences import Sentences

_BLOCK = 1 << 16
_BYTES = np.arange(8)
_MIX = np.uint64(0x9E3779B97F4A7C15)


def rows_of(wanted: Sentences, known: Sentences) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of equal sentences.

    Args:
        wanted: Distinct sentences.
        known: Sentences that they are looked up in.

    Returns:
        Rows of `wanted` and rows of `known`, int64 (pairs,) each.
    """
    keys = np.concatenate([_keys(wanted, begin) for begin in range(0, len(wanted), _BLOCK)])
    order = np.argsort(keys, kind="stable")
    keys, pairs = keys[order], list[tuple[int, int]]()
    for begin in range(0, len(known), _BLOCK):
        seen = _keys(known, begin)
        first, last = np.searchsorted(keys, seen, "left"), np.searchsorted(keys, seen, "right")
        for row in np.flatnonzero(first < last).tolist():
            (text,) = known.encoded([begin + row])
            others = order[first[row] : last[row]]
            pairs += [
                (int(o), begin + row) for o, each in zip(others, wanted.encoded(others), strict=True) if each == text
            ]
    found = np.array(pairs, np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _keys(sentences: Sentences, begin: int) -> NDArray[np.uint64]:
    """Numbers that are equal for equal sentences, and differ for most others: of a block, uint64 (b,)."""
    text, all_starts, all_ends = sentences.cuts
    starts, ends = all_starts[begin : begin + _BLOCK, None], all_ends[begin : begin + _BLOCK, None]
    head = text[np.minimum(starts + _BYTES, ends - 1)].view(np.uint64)[:, 0]
    tail = text[np.maximum(ends - 1 - _BYTES, starts)].view(np.uint64)[:, 0]
    with np.errstate(over="ignore"):
        return ((head * _MIX) ^ tail) * _MIX + (ends - starts)[:, 0].astype(np.uint64)
