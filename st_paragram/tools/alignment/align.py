"""Sentence alignment of two documents with the same content in the same order.

An alignment is a sequence of blocks, in the order of both documents. A block is one sentence of
each document (1-1), or one sentence of one and two neighbors of the other (1-2, 2-1). Sentences in
no block are skipped (1-0, 0-1).

The score s(B) of a block is the margin score (Artetxe and Schwenk, ACL 2019, arXiv 1811.01136; see
`margin`) of its two sides, each embedded as one text with its sentences joined by a space.
Embedding joined sentences, instead of adding scores of single sentences, is the idea of Vecalign
(Thompson and Koehn, EMNLP 2019), but the search here is exact. The background of a side, with one
sentence or two, is its mean cosine with the k nearest *single* sentences of the other document:
joined texts overlap, and near copies of one text would make the background too high.

The alignment maximizes

    sum over blocks B of (s(B) - skip)

So a block is used if it scores at least `skip`. A 1-2 block replaces a 1-1 block and a skipped
sentence if the joined sentences fit better than the single sentence. (Weighting a block by its
number of sentences would reward every stray sentence added to a block.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress, pairwise
from typing import NamedTuple

import numpy as np

from st_paragram.core.encoding.embed import list_of_texts
from st_paragram.errors import MiningError
from st_paragram.tools.alignment.settings import AlignmentSettings
from st_paragram.tools.bitext_mining.margin import Scores, margin_scores
from st_paragram.tools.neighbors.exact import nearest_neighbors
from st_paragram.tools.neighbors.results import Vectors
from st_paragram.tools.neighbors.vectors import blocks

Embed = Callable[[Sequence[str]], Vectors]
Gains = tuple[Scores, Scores, Scores]

#: Maximum product of the numbers of sentences, with one byte of memory for each pair.
MOST_CELLS = 400_000_000
_SCORES_AT_A_TIME = 1 << 22
#: Source and target sentences of each kind of block, in the order of preference among equally good
#: blocks.
KINDS = ((1, 1), (1, 2), (2, 1))
_SKIP_SOURCE = len(KINDS)
_SKIP_TARGET = len(KINDS) + 1


@dataclass(frozen=True)
class Block:
    """Sentences that translate each other, or a skipped sentence.

    A side is one row of a document, from 0, or two neighboring rows (ignoring blank rows). It is
    empty if the other is skipped.
    """

    source: tuple[int, ...]
    target: tuple[int, ...]
    score: float  # margin score


def align(
    source: Sequence[str],
    target: Sequence[str],
    embed: Embed,
    settings: AlignmentSettings | None = None,
) -> list[Block]:
    """Align two documents of n and m sentences; return the blocks in order.

    Time: 3 n m cosines, and the same again for backgrounds. Memory: n m bytes, and the vectors.
    `embed` returns vectors of length 1 for c texts, float32 (c, D), and zeros for a text without a
    known token. Such a sentence is skipped.
    """
    settings = settings or AlignmentSettings()
    source = list_of_texts(source)
    target = list_of_texts(target)
    source_rows = sentence_rows(source)
    target_rows = sentence_rows(target)
    check_size(len(source_rows), len(target_rows))
    source_side = _embedded(source, source_rows, embed)
    target_side = _embedded(target, target_rows, embed)
    n = len(source_side.rows)
    m = len(target_side.rows)
    aligned: list[Block] = []
    if n and m:
        scores = BlockScores(source_side, target_side, settings)
        for kind, i, j in best_path(scores.gains(), n, m):
            height, width = KINDS[kind]
            block = Block(
                source=tuple(source_side.rows[i : i + height]),
                target=tuple(target_side.rows[j : j + width]),
                score=scores.of(kind, i, j),
            )
            aligned.append(block)
    if settings.with_skipped:
        return list(_with_skipped(aligned, source_rows, target_rows))
    return aligned


def sentence_rows(document: Sequence[str]) -> list[int]:
    """Return the rows of a document that are not blank."""
    return [row for row, sentence in enumerate(document) if sentence.strip()]


class _Embedded(NamedTuple):
    """The embedded sentences of a document."""

    rows: list[int]  # of the c sentences with a known token
    single: Vectors  # float32 (c, D)
    joined: Vectors  # of pairs of neighbors, float32 (c - 1, D)


def _embedded(document: Sequence[str], rows: list[int], embed: Embed) -> _Embedded:
    if not rows:
        none = np.zeros((0, 1), np.float32)
        return _Embedded(rows, none, none)
    sentences = [document[row] for row in rows]
    pairs = [f"{first} {second}" for first, second in pairwise(sentences)]
    vectors = embed(sentences + pairs)
    single = vectors[: len(rows)]
    is_known = np.any(single, axis=1)
    if not is_known.all():
        return _embedded(document, list(compress(rows, is_known)), embed)
    return _Embedded(rows, single, vectors[len(rows) :])


def check_size(source: int, target: int) -> None:
    """Refuse documents with too many sentences (without blank sentences) for the memory."""
    if source * target > MOST_CELLS:
        raise MiningError(
            f"{source:,} and {target:,} sentences are too many to align (their product is above"
            f" {MOST_CELLS:,}); split the documents into chapters, or use st-paragram mine, which"
            " ignores order"
        )


class BlockScores:
    """Scores of blocks, computed in parts that fit into memory."""

    def __init__(self, source: _Embedded, target: _Embedded, settings: AlignmentSettings) -> None:
        """Use n and m sentences, at least one of each."""
        self._settings = settings
        # vectors of single sentences and of pairs of neighbors
        self._source = (source.single, source.joined)
        self._target = (target.single, target.joined)
        self._source_backgrounds = self._backgrounds(self._source, target.single)
        self._target_backgrounds = self._backgrounds(self._target, source.single)

    def gains(self) -> Iterator[Gains]:
        """Yield by how much blocks score above `least`, in the form that `best_path` needs."""
        n = len(self._source[0])
        m = len(self._target[0])
        for begin, end in blocks(n, max(1, _SCORES_AT_A_TIME // m)):
            first = max(begin - 1, 0)  # the first of two sentences that end at `begin`
            one_one = self._gains(0, slice(begin, end))
            one_two = self._gains(1, slice(begin, end))
            two_one = self._gains(2, slice(first, end - 1))
            if begin == 0:
                two_one = np.concatenate([np.zeros((1, m)), two_one])
            yield from zip(one_one, one_two, two_one, strict=True)

    def _gains(self, kind: int, rows: slice) -> Scores:
        return self._scores(kind, rows, slice(None)) - self._settings.least

    def of(self, kind: int, row: int, column: int) -> float:
        """Return the score of one block, given the first sentences of its sides."""
        return float(self._scores(kind, slice(row, row + 1), slice(column, column + 1))[0, 0])

    def _scores(self, kind: int, rows: slice, columns: slice) -> Scores:
        """Score the blocks of one kind with the given first sentences, float64 (rows, columns)."""
        height, width = KINDS[kind]
        source = self._source[height - 1][rows].astype(np.float64)
        target = self._target[width - 1][columns].astype(np.float64)
        # In float64 and rounded once: cosines must not depend on threads or on positions of texts.
        cosines = (source @ target.T).astype(np.float32).astype(np.float64)
        return margin_scores(
            cosines,
            self._source_backgrounds[height - 1][rows, None],
            self._target_backgrounds[width - 1][None, columns],
            self._settings.margin,
        )

    def _backgrounds(self, sides: Sequence[Vectors], others: Vectors) -> list[Scores]:
        return [self._background(vectors, others) for vectors in sides]

    def _background(self, vectors: Vectors, others: Vectors) -> Scores:
        if not len(vectors):
            return np.zeros(0)
        return nearest_neighbors(vectors, others, min(self._settings.neighbors, len(others))).means


def best_path(gains: Iterable[Gains], n: int, m: int) -> list[tuple[int, int, int]]:
    """Find the blocks with the highest total gain, in order and without overlap.

    A block is its index in `KINDS` and the first sentences of its sides. The search goes through
    the source sentence by sentence, with n m bytes of memory. `best[j]` is the maximum gain of
    blocks in the source so far and the first j target sentences. Skipping a sentence gains nothing,
    so skipped target sentences are a running maximum over j. Everything else depends on the last
    two source sentences: no loop over j.

    Among equally good paths it chooses, from the end, at every step the first possible of: a block,
    in the order of `KINDS`; a skipped source sentence; a skipped target sentence.

    There are `n` source and `m` target sentences, at least 1 each. For each source sentence,
    `gains` has the gains of blocks that *end* with it, by kind and first target sentence: float64
    (m,), (m - 1,), (m,). For the first sentence, blocks of two source sentences are ignored.
    """
    moves = np.empty((n, m + 1), dtype=np.uint8)
    best = np.zeros(m + 1)
    before = best
    reached = np.empty((len(KINDS) + 1, m + 1))
    for row, (one_one, one_two, two_one) in enumerate(gains):
        reached.fill(-np.inf)
        reached[0, 1:] = best[:-1] + one_one
        reached[1, 2:] = best[:-2] + one_two
        if row:
            reached[2, 1:] = before[:-1] + two_one
        reached[_SKIP_SOURCE] = best
        most = reached.max(axis=0)
        before = best
        best = np.maximum.accumulate(most)
        moves[row] = np.where(best > most, _SKIP_TARGET, reached.argmax(axis=0))
    steps = []
    while n and m:
        move = int(moves[n - 1, m])
        if move == _SKIP_SOURCE:
            n -= 1
        elif move == _SKIP_TARGET:
            m -= 1
        else:
            height, width = KINDS[move]
            n -= height
            m -= width
            steps.append((move, n, m))
    return steps[::-1]


def _with_skipped(
    aligned: Sequence[Block], source: Sequence[int], target: Sequence[int]
) -> Iterator[Block]:
    """Yield the blocks and the other rows as skipped blocks, source rows first.

    A skipped row is before the first block that has a later row.
    """
    aligned_source = set(chain.from_iterable(block.source for block in aligned))
    aligned_target = set(chain.from_iterable(block.target for block in aligned))
    skipped_source = deque(row for row in source if row not in aligned_source)
    skipped_target = deque(row for row in target if row not in aligned_target)
    for block in aligned:
        while skipped_source and skipped_source[0] < block.source[0]:
            yield Block((skipped_source.popleft(),), (), 0.0)
        while skipped_target and skipped_target[0] < block.target[0]:
            yield Block((), (skipped_target.popleft(),), 0.0)
        yield block
    for row in skipped_source:
        yield Block((row,), (), 0.0)
    for row in skipped_target:
        yield Block((), (row,), 0.0)
