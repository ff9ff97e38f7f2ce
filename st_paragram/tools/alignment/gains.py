"""What a block of sentences gains over skipping them.

The cost of a block of a source and b target sentences is

    (a + b) / 2 d + 0.13 (a + b - 2) + (x - y)^2 / (100 (x + y))

- d = (1 - c) / ((1 - s) + (1 - t)) is the distance of its sides (Thompson and Koehn, EMNLP 2019). c
  is their cosine, s and t are their backgrounds: the mean cosine of a side with the k most similar
  single sentences of the other document nearby. So sides with c = s = t have d = 0.5. Above 0.65
  there is no block. The vector of a side is the sum of the vectors of its sentences, each times the
  square root of its characters: the mean of t random vectors of length 1 has the length t^-0.5, so
  this is near the embedding of the joined text by a model that averages.
- The second term keeps blocks small.
- x and y are numbers of characters, scaled so that translations have as many. As in Gale and Church
  (Computational Linguistics 1993), the variance of x - y is proportional to the length.

If the first or last sentence of several is farther than 0.6 from the whole other side, 0.6 times
the excess is added: such a sentence strayed into the block.

A skipped sentence costs `skip_cost`. So a block gains (a + b) skip_cost minus its cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from st_paragram.tools.alignment.path import (
    REACH,
    Gains,
    Step,
    cosines_of,
    kinds_of_blocks,
    path_columns,
    vectors_of_runs,
)
from st_paragram.tools.alignment.settings import AlignmentSettings
from st_paragram.tools.neighbors.results import Vectors
from st_paragram.tools.neighbors.vectors import blocks

_NODES_AT_A_TIME = 128
# Chosen with `AlignmentSettings` on development documents, see docs/mining.md.
_EXTRA = 0.13  # cost of a sentence beyond one per side
_CHARACTERS = 100
_STRAY = 0.6
_STRAY_DISTANCE = 0.6
_MOST_DISTANCE = 0.65
# Limits of the cosines of neighbors: in a document of a few sentences, the nearest are not near.
_NEIGHBORS = (0.25, 0.999)


class Document(NamedTuple):
    """The sentences of a document in which the model knows a token.

    Attributes:
        rows: Rows of the c sentences.
        vectors: Their embeddings, each as long as the square root of its characters, float32
            (c, D).
        ends: Characters up to the end of each, from 0, float64 (c + 1,).
    """

    rows: list[int]
    vectors: Vectors
    ends: NDArray[np.float64]


class _Runs(NamedTuple):
    """Neighboring sentences that end at c nodes, for each of s numbers of sentences from 1.

    Attributes:
        vectors: Vectors of length 1, float64 (s, c, D).
        distances: 1 minus the background, (s, c).
        characters: Scaled numbers of characters, (s, c).
    """

    vectors: NDArray[np.float64]
    distances: NDArray[np.float64]
    characters: NDArray[np.float64]


class BlockGains:
    """Gains of blocks of sentences, computed in parts that fit into memory."""

    def __init__(
        self,
        source: Document,
        target: Document,
        rough: Sequence[Step],
        settings: AlignmentSettings,
    ) -> None:
        """Use n and m sentences, at least one of each, and a rough path."""
        ratios = [1.0]
        if rough:
            first, second, height, width = np.array(rough).T
            characters = source.ends[first + height] - source.ends[first]
            ratios = (target.ends[second + width] - target.ends[second]) / characters
        scale = float(np.sqrt(np.median(ratios)))
        back = [Step(step.target, step.source, step.width, step.height) for step in rough]
        self._source = _Side(source, target.vectors, rough, scale=scale, settings=settings)
        self._target = _Side(target, source.vectors, back, scale=1 / scale, settings=settings)
        self._settings = settings
        self.kinds = kinds_of_blocks(settings.max_sentences)

    def __call__(self, rows: slice, columns: slice) -> Gains:
        """Return the gains of blocks that end at nodes, (kinds, rows, columns)."""
        before = self._settings.max_sentences - 1  # first sentences are so far before the last
        source = self._source.runs(rows.start - before, rows.stop)
        target = self._target.runs(columns.start - before, columns.stop)
        distances = {}
        strays = {}
        for a, b in self.kinds:
            distances[a, b] = _distances(source, target, a - 1, b - 1)
            strays[a, b] = _STRAY * np.maximum(distances[a, b] - _STRAY_DISTANCE, 0)
        tiles = []
        for a, b in self.kinds:
            costs = (a + b) / 2 * distances[a, b] + _EXTRA * (a + b - 2)
            costs += _length_costs(source.characters[a - 1], target.characters[b - 1])
            if a > 1:  # the last and the first source sentence
                costs += strays[1, b] + np.roll(strays[1, b], a - 1, axis=0)
            if b > 1:
                costs += strays[a, 1] + np.roll(strays[a, 1], b - 1, axis=1)
            gains = (a + b) * self._settings.skip_cost - costs
            gains[distances[a, b] > _MOST_DISTANCE] = -np.inf
            tiles.append(gains[before:, before:])
        return np.stack(tiles)


class _Side:
    """The runs of one document."""

    def __init__(
        self,
        document: Document,
        others: Vectors,
        rough: Sequence[Step],
        scale: float,
        settings: AlignmentSettings,
    ) -> None:
        self._document = document
        self._ends = document.ends * scale
        self._size = settings.max_sentences
        columns = path_columns(rough, len(document.rows), len(others)).astype(np.int64)
        distances = []
        for begin, end in blocks(len(columns), _NODES_AT_A_TIME):
            low = max(int(columns[begin]) - REACH, 0)
            nearby = others[low : int(columns[end - 1]) + REACH]
            nearby = vectors_of_runs(nearby, slice(1, len(nearby) + 1), 1)[0]
            runs = vectors_of_runs(document.vectors, slice(begin, end), self._size)
            k = min(settings.neighbors, len(nearby))
            cosines = (runs @ nearby.T).astype(np.float32).astype(np.float64)
            nearest = np.partition(cosines, -k)[..., -k:]
            distances.append(1 - np.clip(np.sort(nearest), *_NEIGHBORS).mean(axis=-1))
        self._distances = np.concatenate(distances, axis=1)

    def runs(self, start: int, stop: int) -> _Runs:
        """Return the runs that end at nodes; those of node 0 and before it mean nothing."""
        nodes = np.maximum(np.arange(start, stop), 1)
        characters = []
        for size in range(1, self._size + 1):
            characters.append(self._ends[nodes] - self._ends[np.maximum(nodes - size, 0)])
        vectors = vectors_of_runs(self._document.vectors, slice(start, stop), self._size)
        return _Runs(vectors, self._distances[:, nodes], np.stack(characters))


def _distances(source: _Runs, target: _Runs, i: int, j: int) -> Gains:
    """Compute d of runs of i + 1 and j + 1 sentences that end at c and e nodes, (c, e)."""
    cosines = cosines_of(source.vectors[i], target.vectors[j])
    distances: Gains = (1 - cosines) / (source.distances[i, :, None] + target.distances[j])
    return distances


def _length_costs(source: NDArray[np.float64], target: NDArray[np.float64]) -> Gains:
    differences = source[:, None] - target
    costs: Gains = differences**2 / (_CHARACTERS * (source[:, None] + target))
    return costs
