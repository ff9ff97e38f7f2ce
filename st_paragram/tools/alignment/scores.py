"""Margin scores of all blocks of one or two sentences of two documents, in parts that fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from st_paragram.tools.alignment.settings import AlignmentSettings
from st_paragram.tools.bitext_mining.margin import Scores, margin_scores
from st_paragram.tools.neighbors.exact import nearest_neighbors
from st_paragram.tools.neighbors.results import Vectors
from st_paragram.tools.neighbors.vectors import blocks, unit_rows

#: Source and target sentences of each kind of block, in the order of preference among equally good ones.
KINDS = ((1, 1), (1, 2), (2, 1))

Embed = Callable[[Sequence[str]], Vectors]
Gains = tuple[Scores, Scores, Scores]

_SCORES_AT_A_TIME = 1 << 22


class BlockScores:
    """Scores of blocks; a side of two sentences is embedded as one text.

    Background of a side, of one sentence or two: mean cosine with its k nearest *single* sentences of the other
    document, or with all if there are fewer.
    """

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
