"""What a block of sentences gains over skipping them.

The cost of a block of a source and b target sentences is

    (a + b) / 2 d + 0.13 (a + b - 2) + (x - y)^2 / (100 (x + y))

- d = (1 - c) / ((1 - s) + (1 - t)) is the distance of its sides (Thompson and Koehn, EMNLP 2019). c
  is their cosine, s and t are their backgrounds: the mean cosine of a side with the k most similar
  single sentences of the other document nearby. So sides with c = s = t have d = 0.5. Sides with d
  above 0.65 never form a block. The vector of a side is the sum of the vectors of its sentences,
  each times the square root of its characters: the mean of t random vectors of length 1 has the
  length t^-0.5, so this is near the embedding of the joined text by a model that averages.
- The second term keeps blocks small.
- x and y are numbers of characters, scaled so that translations have as many. As in Gale and Church
  (Computational Linguistics 1993), the variance of x - y is proportional to the length.

If the first or last sentence of several is farther than 0.6 from the whole other side, 0.6 times
the excess is added: such a sentence strayed into the block.

A skipped sentence costs `skip_cost`. So a block gains (a + b) skip_cost minus its cost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from st_paragram.core.arrays import Floats, Integers
from st_paragram.tools.alignment.path import (
    REACH,
    Gains,
    Nodes,
    Steps,
    cosines_of,
    kinds_of_blocks,
    path_columns,
    units_before,
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
        sentences: The c sentences.
        vectors: Their embeddings, each as long as the square root of its characters, float32
            (c, D).
        ends: Characters up to the end of each, from 0, (c + 1,).
    """

    rows: list[int]
    sentences: list[str]
    vectors: Vectors
    ends: Integers

    def characters(self, nodes: Nodes, size: int) -> Integers:
        """Count the characters of 1 to `size` sentences that end at each node, (size, nodes)."""
        return self.ends[nodes] - self.ends[units_before(nodes, size)]


class BlockGains:
    """Gains of blocks of sentences, computed in parts that fit into memory."""

    def __init__(
        self,
        source: Document,
        target: Document,
        rough: Steps,
        settings: AlignmentSettings,
    ) -> None:
        """Use n and m sentences, at least one of each, and a rough path."""
        ratios = np.ones(1)
        if len(rough):
            first, second, height, width = rough.T
            characters = source.ends[first + height] - source.ends[first]
            ratios = (target.ends[second + width] - target.ends[second]) / characters
        back = rough[:, [1, 0, 3, 2]]
        self._scale = np.sqrt(np.median(ratios))
        self._source = source
        self._target = target
        self._source_backgrounds = _backgrounds(source, target, rough, settings=settings)
        self._target_backgrounds = _backgrounds(target, source, back, settings=settings)
        self._settings = settings
        self.kinds = kinds_of_blocks(settings.max_sentences)

    def __call__(self, rows: Nodes, columns: Nodes) -> Gains:
        """Return the gains of blocks that end at nodes, (kinds, rows, columns)."""
        size = self._settings.max_sentences
        before = size - 1  # first sentences are so far before the last
        # no block ends at node 0
        source_nodes = np.arange(rows[0] - before, rows[-1] + 1).clip(1)
        target_nodes = np.arange(columns[0] - before, columns[-1] + 1).clip(1)
        sources = vectors_of_runs(self._source.vectors, source_nodes, size)
        targets = vectors_of_runs(self._target.vectors, target_nodes, size)
        s = self._source_backgrounds[:, source_nodes, None]
        t = self._target_backgrounds[:, target_nodes]
        x = self._source.characters(source_nodes, size)[..., None] * self._scale
        y = self._target.characters(target_nodes, size) / self._scale
        strays = {}
        tiles = []
        for a, b in self.kinds:  # smaller blocks first
            cosines = cosines_of(sources[a - 1], targets[b - 1])
            distances = (1 - cosines) / (2 - s[a - 1] - t[b - 1])
            strays[a, b] = _STRAY * np.maximum(distances - _STRAY_DISTANCE, 0)
            costs = (a + b) / 2 * distances + _EXTRA * (a + b - 2)
            costs += (x[a - 1] - y[b - 1]) ** 2 / (_CHARACTERS * (x[a - 1] + y[b - 1]))
            if a > 1:  # the last and the first source sentence
                costs += strays[1, b] + np.roll(strays[1, b], a - 1, axis=0)
            if b > 1:
                costs += strays[a, 1] + np.roll(strays[a, 1], b - 1, axis=1)
            gains = (a + b) * self._settings.skip_cost - costs
            gains[distances > _MOST_DISTANCE] = -np.inf
            tiles.append(gains[before:, before:])
        return np.stack(tiles)


def _backgrounds(
    document: Document, other: Document, rough: Steps, settings: AlignmentSettings
) -> Floats:
    """Return the backgrounds of 1 to s sentences that end at each node, (s, n + 1).

    Those at node 0 mean nothing.
    """
    m = len(other.rows)
    columns = path_columns(rough, len(document.rows), m).astype(np.int64)
    backgrounds = []
    for begin, end in blocks(len(columns), _NODES_AT_A_TIME):
        runs = vectors_of_runs(document.vectors, np.arange(begin, end), settings.max_sentences)
        low = max(columns[begin] - REACH, 0)
        high = min(columns[end - 1] + REACH, m)
        [nearby] = vectors_of_runs(other.vectors, np.arange(low, high) + 1, 1)
        k = min(settings.neighbors, len(nearby))
        nearest = np.partition(cosines_of(runs, nearby), -k)[..., -k:]
        backgrounds.append(np.clip(nearest, *_NEIGHBORS).mean(axis=-1, dtype=np.float64))
    return np.concatenate(backgrounds, axis=1)
