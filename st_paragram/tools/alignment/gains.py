"""What a block of sentences gains over skipping them.

The cost of a block of a source and b target sentences is

    (a + b) / 2 d + 0.13 (a + b - 2) + (x - y)^2 / (100 (x + y))

- d = (1 - c) / ((1 - s) + (1 - t)) is the distance of its sides, each embedded as one text with its
  sentences joined by a space (Thompson and Koehn, EMNLP 2019). c is their cosine, s and t are their
  backgrounds: the mean cosine of a side with the k most similar *single* sentences of the other
  document nearby (joined texts overlap, and near copies would make the background too high). So
  sides with c = s = t have d = 0.5. Above 0.65 there is no block.
- The second term keeps blocks small.
- x and y are numbers of characters, scaled so that translations have as many. As in Gale and Church
  (Computational Linguistics 1993), the variance of x - y is proportional to the length.

If the first or last sentence of several is farther than 0.6 from the whole other side, 0.6 times
the excess is added: such a sentence strayed into the block.

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

# Chosen with `AlignmentSettings` on development documents, see docs/mining.md.
_EXTRA = 0.13  # cost of a sentence beyond one per side
_CHARACTERS = 100
_STRAY = 0.6
_STRAY_DISTANCE = 0.6
_MOST_DISTANCE = 0.65
# Limits of the cosines of neighbors: in a document of a few sentences, the nearest are not near.
_NEIGHBORS = (0.25, 0.999)


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
        # blocks that end at the first node begin so many nodes before
        before = self._settings.largest - 1
        reach = columns.stop - columns.start
        nearby_rows = self._source.vectors[max(rows.start - reach, 0) : rows.stop + reach]
        nearby_columns = self._target.vectors[max(columns.start - 1, 0) : columns.stop]
        source_nodes = np.arange(rows.start - before, rows.stop)
        target_nodes = np.arange(columns.start - before, columns.stop)
        sources = self._runs(self._source, source_nodes, nearby_columns, self._scale)
        targets = self._runs(self._target, target_nodes, nearby_rows, 1 / self._scale)
        distances = {}
        strays = {}
        for a, b in self.kinds:
            distances[a, b] = _distances(sources[a - 1], targets[b - 1])
            strays[a, b] = _STRAY * np.maximum(distances[a, b] - _STRAY_DISTANCE, 0)
        tiles = []
        for a, b in self.kinds:
            costs = (a + b) / 2 * distances[a, b] + _EXTRA * (a + b - 2)
            costs += _length_costs(sources[a - 1], targets[b - 1])
            if a > 1:  # the last and the first source sentence
                costs += strays[1, b] + np.roll(strays[1, b], a - 1, axis=0)
            if b > 1:
                costs += strays[a, 1] + np.roll(strays[a, 1], b - 1, axis=1)
            gains = (a + b) * self._settings.skip_cost - costs
            gains[distances[a, b] > _MOST_DISTANCE] = -np.inf
            tiles.append(gains[before:, before:])
        return np.stack(tiles)

    def _runs(
        self, document: Document, nodes: NDArray[np.int64], nearby: Vectors, scale: float
    ) -> list[_Runs]:
        """Return runs of 1, 2, ... sentences that end at nodes."""
        runs = []
        ends = np.maximum(nodes, 1)  # no block ends at node 0
        for size in range(1, self._settings.largest + 1):
            begins = np.maximum(ends - size, 0)
            if size == 1:
                vectors = document.vectors[begins]
            else:
                places = zip(begins.tolist(), ends.tolist(), strict=True)
                vectors = self._embed([document.text(i, j - i) for i, j in places])
            k = min(self._settings.neighbors, len(nearby))
            cosines = nearest_neighbors(vectors, nearby, k).similarities.astype(np.float64)
            distances = 1 - np.clip(cosines, *_NEIGHBORS).mean(axis=1)
            characters = scale * (document.ends[ends] - document.ends[begins])
            runs.append(_Runs(vectors.astype(np.float64), distances, characters))
        return runs


def _distances(source: _Runs, target: _Runs) -> Gains:
    """Compute d of sides, (c, D) and (e, D), as (c, e)."""
    # In float64 and rounded once: cosines must not depend on threads or on positions of texts.
    cosines = (source.vectors @ target.vectors.T).astype(np.float32)
    distances: Gains = (1 - cosines) / (source.distances[:, None] + target.distances)
    return distances


def _length_costs(source: _Runs, target: _Runs) -> Gains:
    both = source.characters[:, None] + target.characters
    differences = source.characters[:, None] - target.characters
    costs: Gains = differences**2 / (_CHARACTERS * both)
    return costs
