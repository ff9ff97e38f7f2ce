"""The best way through two documents: a dynamic programme over blocks of one or two sentences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from st_paragram.tools.bitext_mining.margin import Scores

#: Source and target sentences of each kind of block, in the order of preference among equally good ones.
KINDS = ((1, 1), (1, 2), (2, 1))

_SKIP_SOURCE, _SKIP_TARGET = len(KINDS), len(KINDS) + 1
Gains = tuple[Scores, Scores, Scores]


@dataclass(frozen=True)
class Step:
    """A block on the way: sentences `source` and `target` are its first ones, `kind` is its place in `KINDS`."""

    source: int
    target: int
    kind: int


def best_path(gains: Iterable[Gains], n: int, m: int) -> list[Step]:
    """The blocks, in order and without overlap, that together gain most.

    Goes through the source sentence by sentence; n m bytes of memory. `best[j]` is the most that blocks of the source
    so far and the first j target sentences can gain. Skipping a sentence gains nothing, so skipped target sentences
    are a running maximum over j, and all else looks back at the last two source sentences: no loop over j.

    Of equally good ways it takes the one that, read from the end, has at every step the first of: a block, in the
    order of `KINDS`; a skipped source sentence; a skipped target sentence.

    Args:
        gains: For each source sentence what blocks gain that *end* with it, by kind and by their first target
            sentence: float64 (m,), (m - 1,), (m,). Blocks of two source sentences are disregarded for the first.
        n: Source sentences, at least 1.
        m: Target sentences, at least 1.
    """
    moves = np.empty((n, m + 1), dtype=np.uint8)
    before = best = np.zeros(m + 1)
    reached = np.empty((len(KINDS) + 1, m + 1))
    for row, (one_one, one_two, two_one) in enumerate(gains):
        reached.fill(-np.inf)
        reached[0, 1:] = best[:-1] + one_one
        reached[1, 2:] = best[:-2] + one_two
        if row:
            reached[2, 1:] = before[:-1] + two_one
        reached[_SKIP_SOURCE] = best
        most = reached.max(axis=0)
        before, best = best, np.maximum.accumulate(most)
        moves[row] = np.where(best > most, _SKIP_TARGET, reached.argmax(axis=0))
    return _traced(moves, n, m)


def _traced(moves: NDArray[np.uint8], n: int, m: int) -> list[Step]:
    steps = []
    while n and m:
        move = int(moves[n - 1, m])
        if move == _SKIP_SOURCE:
            n -= 1
        elif move == _SKIP_TARGET:
            m -= 1
        else:
            n, m = n - KINDS[move][0], m - KINDS[move][1]
            steps.append(Step(n, m, move))
    return steps[::-1]
