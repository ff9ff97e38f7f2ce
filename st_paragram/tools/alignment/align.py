"""Sentence alignment of two documents that say the same in the same order.

An alignment is a sequence of blocks, in the order of both documents. A block is one sentence of each (1-1), or one
sentence of one and two neighbors of the other (1-2, 2-1). Sentences in no block are skipped (1-0, 0-1).

The score s(B) of a block is the margin score (Artetxe and Schwenk, ACL 2019, arXiv 1811.01136; see `margin`) of its
two sides, each embedded as one text with its sentences joined by a space. To embed joined sentences, rather than add
up scores of single ones, is the idea of Vecalign (Thompson and Koehn, EMNLP 2019); the search here is exact, theirs
is not. The background of a side, of one sentence or two, is its mean cosine with the k nearest *single* sentences of
the other document: joined texts overlap, and near copies of one text would make the background too high.

The alignment is one that maximizes

    sum over blocks B of (s(B) - skip)

so a block is taken where it scores `skip` or more, and a 1-2 block is taken in place of a 1-1 block and a
skipped sentence if the joined sentences fit better than the one alone. (To count a block by its sentences, as costs
per sentence would, pays for every stray sentence that a block can take up.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from st_paragram.errors import MiningError
from st_paragram.tools.alignment.scores import KINDS, BlockScores, Embed, Gains
from st_paragram.tools.alignment.settings import AlignmentSettings

#: Sentences of one document times those of the other: a byte of memory each.
MOST_CELLS = 400_000_000

_SKIP_SOURCE, _SKIP_TARGET = len(KINDS), len(KINDS) + 1


@dataclass(frozen=True)
class Block:
    """Sentences that translate each other.

    Attributes:
        source: Their rows in the source document, from 0: one, or two that are neighbors but for blank rows; none if
            the block is a skipped sentence of the target document.
        target: The same of the target document.
        score: Their margin score.
    """

    source: tuple[int, ...]
    target: tuple[int, ...]
    score: float


class Step(NamedTuple):
    """A block on the way: its place in `KINDS`, and its first sentences."""

    kind: int
    source: int
    target: int


def align(
    source: Sequence[str], target: Sequence[str], embed: Embed, settings: AlignmentSettings | None = None
) -> list[Block]:
    """Align two documents of n and m sentences.

    Time: 3 n m cosines, and as much again for backgrounds. Memory: n m bytes, and the vectors.

    Args:
        source: Sentences; blank ones are in no block.
        target: Sentences.
        embed: Gives float32 (c, D) for c texts.
        settings: How to score.

    Returns:
        The blocks in order.
    """
    settings = settings or AlignmentSettings()
    sides = [[row for row, sentence in enumerate(document) if sentence.strip()] for document in (source, target)]
    rows, others = sides
    check_size(len(rows), len(others))
    found = []
    if rows and others:
        scores = BlockScores([source[row] for row in rows], [target[row] for row in others], embed, settings)
        for kind, i, j in best_path(scores.gains(), len(rows), len(others)):
            ahead, across = KINDS[kind]
            found.append(Block(tuple(rows[i : i + ahead]), tuple(others[j : j + across]), scores.of(kind, i, j)))
    return list(_with_skipped(found, rows, others)) if settings.with_skipped else found


def check_size(source: int, target: int) -> None:
    """Refuse documents of so many sentences, blank ones apart, that they would take too much memory."""
    if source * target > MOST_CELLS:
        seen = f"{source:,} and {target:,} sentences are too many to align (their product is above {MOST_CELLS:,})"
        raise MiningError(f"{seen}; cut the documents at chapters, or mine them without regard to order")


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
    steps = []
    while n and m:
        move = int(moves[n - 1, m])
        if move == _SKIP_SOURCE:
            n -= 1
        elif move == _SKIP_TARGET:
            m -= 1
        else:
            n, m = n - KINDS[move][0], m - KINDS[move][1]
            steps.append(Step(move, n, m))
    return steps[::-1]


def _with_skipped(found: Iterable[Block], source: Sequence[int], target: Sequence[int]) -> Iterator[Block]:
    """Blocks with the rows between them, those of the source first."""
    i = j = 0
    for block in [*found, None]:
        while i < len(source) and (block is None or source[i] != block.source[0]):
            yield Block((source[i],), (), 0.0)
            i += 1
        while j < len(target) and (block is None or target[j] != block.target[0]):
            yield Block((), (target[j],), 0.0)
            j += 1
        if block is not None:
            yield block
            i, j = i + len(block.source), j + len(block.target)
