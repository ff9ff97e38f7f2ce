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

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from st_paragram.errors import MiningError
from st_paragram.tools.alignment.settings import AlignmentSettings
from st_paragram.tools.bitext_mining.margin import Scores, margin_scores
from st_paragram.tools.neighbors.exact import nearest_neighbors
from st_paragram.tools.neighbors.results import Vectors
from st_paragram.tools.neighbors.vectors import blocks, unit_rows

Embed = Callable[[Sequence[str]], Vectors]
Gains = tuple[Scores, Scores, Scores]

#: Sentences of one document times those of the other: a byte of memory each.
MOST_CELLS = 400_000_000
_SCORES_AT_A_TIME = 1 << 22
#: Source and target sentences of each kind of block, in the order of preference among equally good ones.
KINDS = ((1, 1), (1, 2), (2, 1))
_SKIP_SOURCE, _SKIP_TARGET = len(KINDS), len(KINDS) + 1


@dataclass(frozen=True)
class Block:
    """Sentences that translate each other, or a skipped sentence.

    A side is one row of a document, from 0, or two that are neighbors but for blank rows; none where the other side is
    skipped.
    """

    source: tuple[int, ...]
    target: tuple[int, ...]
    score: float  # margin score


def align(
    source: Sequence[str], target: Sequence[str], embed: Embed, settings: AlignmentSettings | None = None
) -> list[Block]:
    """Align two documents of n and m sentences, of which blank ones are in no block; returns the blocks in order.

    Time: 3 n m cosines, and as much again for backgrounds. Memory: n m bytes, and the vectors. `embed` gives float32
    (c, D) for c texts.
    """
    settings = settings or AlignmentSettings()
    sides = [[row for row, sentence in enumerate(document) if sentence.strip()] for document in (source, target)]
    rows, others = sides
    check_size(len(rows), len(others))
    found: list[Block] = []
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


class BlockScores:
    """Scores of blocks, computed in parts that fit into memory."""

    def __init__(self, source: Sequence[str], target: Sequence[str], embed: Embed, settings: AlignmentSettings) -> None:
        """Embed n and m sentences, at least one of each, and their pairs of neighbors."""
        self._settings = settings
        # For each document: vectors float32 (c, D) of single sentences, and of pairs of neighbors.
        self._vectors = []
        for name, document in (("source", source), ("target", target)):
            texts = [*document, *(f"{one} {other}" for one, other in pairwise(document))]
            vectors = unit_rows(embed(texts), f"{name} sentences")
            self._vectors.append((vectors[: len(document)], vectors[len(document) :]))
        singles = [one for one, _ in self._vectors]
        self._backgrounds = [
            [self._background(own, other) for own in vectors]
            for vectors, other in zip(self._vectors, singles[::-1], strict=True)
        ]

    def gains(self) -> Iterator[Gains]:
        """By how much blocks score above `least`, as `best_path` asks for it."""
        n, m = (len(one) for one, _ in self._vectors)
        for begin, end in blocks(n, max(1, _SCORES_AT_A_TIME // m)):
            first = max(begin - 1, 0)  # of the two sentences that end with the one at `begin`
            kinds = [
                self._scores(kind, slice(start, stop), slice(None)) - self._settings.least
                for kind, (start, stop) in enumerate(((begin, end), (begin, end), (first, end - 1)))
            ]
            if begin == 0:
                kinds[2] = np.concatenate([np.zeros((1, m)), kinds[2]])
            yield from zip(*kinds, strict=True)

    def of(self, kind: int, row: int, column: int) -> float:
        """The score of one block, by the first sentences of its sides."""
        return float(self._scores(kind, slice(row, row + 1), slice(column, column + 1))[0, 0])

    def _scores(self, kind: int, rows: slice, columns: slice) -> Scores:
        """Of the blocks of one kind whose first sentences are given, float64 (rows, columns)."""
        ahead, across = (number - 1 for number in KINDS[kind])
        own, other = self._vectors[0][ahead][rows], self._vectors[1][across][columns]
        # In float64 and rounded once: cosines must not depend on threads or on where texts are.
        cosines = (own.astype(np.float64) @ other.astype(np.float64).T).astype(np.float32).astype(np.float64)
        backgrounds = self._backgrounds[0][ahead][rows, None], self._backgrounds[1][across][None, columns]
        return margin_scores(cosines, *backgrounds, self._settings.margin)

    def _background(self, vectors: Vectors, others: Vectors) -> Scores:
        if not len(vectors):
            return np.zeros(0)
        return nearest_neighbors(vectors, others, min(self._settings.neighbors, len(others))).means


def best_path(gains: Iterable[Gains], n: int, m: int) -> list[tuple[int, int, int]]:
    """The blocks, in order and without overlap, that together gain most: place in `KINDS`, and first sentences.

    Goes through the source sentence by sentence; n m bytes of memory. `best[j]` is the most that blocks of the source
    so far and the first j target sentences can gain. Skipping a sentence gains nothing, so skipped target sentences
    are a running maximum over j, and all else looks back at the last two source sentences: no loop over j.

    Of equally good ways it takes the one that, read from the end, has at every step the first of: a block, in the
    order of `KINDS`; a skipped source sentence; a skipped target sentence.

    There are `n` source and `m` target sentences, at least 1. For each source sentence, `gains` has what blocks gain
    that *end* with it, by kind and by their first target sentence: float64 (m,), (m - 1,), (m,). Blocks of two source
    sentences are disregarded for the first.
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
            steps.append((move, n, m))
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
