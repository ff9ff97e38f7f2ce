"""What aligning a block of sentences gains over skipping them.

The cost of a block of a source and b target sentences is

    (a + b) / 2 d + 0.13 (a + b - 2) + (x - y)^2 / (100 (x + y))

- d = (1 - c) / ((1 - s) + (1 - t)) is the cosine distance of its sides, each embedded as one text
  with its sentences joined by a space (Thompson and Koehn, EMNLP 2019). c is their cosine. s and t
  are their backgrounds: the mean cosine of a side with the k most similar *single* sentences of the
  other document nearby (joined texts overlap, and near copies would make the background too high).
  Sides as far apart as their backgrounds have d = 0.5.
- The second term keeps out stray sentences: a block should not be larger than needed.
- x and y are the numbers of characters, after both are scaled to the same mean (Gale and Church,
  Computational Linguistics 1993): the variance of their difference is proportional to the length.

A skipped sentence costs `skip_cost`. So a block gains (a + b) skip_cost minus its cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from st_paragram.tools.alignment.path import Gains, Step
from st_paragram.tools.alignment.settings import AlignmentSettings
from st_paragram.tools.neighbors.exact import nearest_neighbors
from st_paragram.tools.neighbors.results import Vectors

Embed = Callable[[Sequence[str]], Vectors]

_EXTRA = 0.13  # cost of a sentence beyond one per side
_CHARACTERS = 100
_LEAST_DISTANCE = 1e-3  # of a background: the nearest sentences may be equal


class Document(NamedTuple):
    """The sentences of a document.

    Attributes:
        rows: Rows of the c sentences in which the model knows a token.
        sentences: The c sentences.
        vectors: Their vectors of length 1, float32 (c, D).
        ends: Characters up to the end of each, from 0, (c + 1,).
    """

    rows: list[int]
    sentences: list[str]
    vectors: Vectors
    ends: NDArray[np.float64]

    def text(self, begin: int, count: int) -> str:
        """Join neighboring sentences."""
        return " ".join(self.sentences[begin : begin + count])

    def characters(self, begin: int, count: int) -> float:
        """Count the characters of neighboring sentences."""
        return float(self.ends[begin + count] - self.ends[begin])


class _Runs(NamedTuple):
    """Neighboring sentences that end at c nodes, each embedded as one text."""

    vectors: NDArray[np.float64]  # (c, D)
    distances: NDArray[np.float64]  # 1 minus the background, (c,)
    characters: NDArray[np.float64]  # scaled, (c,)


def kinds_of_blocks(largest: int) -> list[tuple[int, int]]:
    """Return source and target sentences of each kind of block.

    A block has at most `largest` + 1 sentences, at least one of them on each side.
    """
    kinds = []
    for total in range(2, largest + 2):
        for height in range(1, total):
            kinds.append((height, total - height))
    return kinds


class BlockGains:
    """Gains of blocks of sentences, computed in parts that fit into memory."""

    def __init__(
        self, source: Document, target: Document, embed: Embed, settings: AlignmentSettings
    ) -> None:
        """Use n and m sentences, at least one of each."""
        self._source = source
        self._target = target
        self._embed = embed
        self._settings = settings
        self.kinds = kinds_of_blocks(settings.largest)
        self._scale = 1.0

    def scale_lengths(self, steps: Sequence[Step]) -> None:
        """Scale lengths by the median ratio of target and source characters in rough blocks."""
        ratios = []
        for step in steps:
            characters = self._source.characters(step.source, step.height)
            ratios.append(self._target.characters(step.target, step.width) / characters)
        if ratios:
            self._scale = float(np.sqrt(np.median(ratios)))

    def __call__(self, rows: slice, columns: slice) -> Gains:
        """Return the gains of blocks that end at nodes, (kinds, rows, columns)."""
        reach = columns.stop - columns.start
        nearby_rows = self._source.vectors[max(rows.start - reach, 0) : rows.stop + reach]
        nearby_columns = self._target.vectors[max(columns.start - 1, 0) : columns.stop]
        sources = self._runs(self._source, rows, nearby_columns, self._scale)
        targets = self._runs(self._target, columns, nearby_rows, 1 / self._scale)
        return np.stack([self._gains(sources[a - 1], targets[b - 1], a + b) for a, b in self.kinds])

    def _gains(self, source: _Runs, target: _Runs, sentences: int) -> Gains:
        # In float64 and rounded once: cosines must not depend on threads or on positions of texts.
        cosines = (source.vectors @ target.vectors.T).astype(np.float32)
        distances = (1 - cosines) / (source.distances[:, None] + target.distances)
        both = source.characters[:, None] + target.characters
        differences = source.characters[:, None] - target.characters
        costs = sentences / 2 * distances + _EXTRA * (sentences - 2)
        costs += differences**2 / (_CHARACTERS * both)
        return sentences * self._settings.skip_cost - costs

    def _runs(self, document: Document, nodes: slice, nearby: Vectors, scale: float) -> list[_Runs]:
        """Return runs of 1, 2, ... sentences."""
        runs = []
        ends = np.maximum(np.arange(nodes.start, nodes.stop), 1)  # no block ends at node 0
        for size in range(1, self._settings.largest + 1):
            begins = np.maximum(ends - size, 0)
            if size == 1:
                vectors = document.vectors[begins]
            else:
                places = zip(begins.tolist(), ends.tolist(), strict=True)
                vectors = self._embed([" ".join(document.sentences[i:j]) for i, j in places])
            k = min(self._settings.neighbors, len(nearby))
            backgrounds = nearest_neighbors(vectors, nearby, k).means
            characters = scale * (document.ends[ends] - document.ends[begins])
            distances = np.maximum(1 - backgrounds, _LEAST_DISTANCE)
            runs.append(_Runs(vectors.astype(np.float64), distances, characters))
        return runs

