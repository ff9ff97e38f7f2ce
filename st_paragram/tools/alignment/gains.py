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

from st_paragram.tools.alignment.path import REACH, Gains, Step, path_columns
from st_paragram.tools.alignment.settings import AlignmentSettings
from st_paragram.tools.neighbors.exact import nearest_neighbors
from st_paragram.tools.neighbors.results import Vectors

Embed = Callable[[Sequence[str]], Vectors]

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
    """Neighboring sentences that end at c nodes, for each of s numbers of sentences from 1.

    Attributes:
        vectors: Vectors of length 1 of the joined sentences, float64 (s, c, D).
        distances: 1 minus the background, (s, c).
        characters: Scaled numbers of characters, (s, c).
    """

    vectors: NDArray[np.float64]
    distances: NDArray[np.float64]
    characters: NDArray[np.float64]


def kinds_of_blocks(max_sentences: int) -> list[tuple[int, int]]:
    """Return source and target sentences of each kind of block.

    A block has at most `max_sentences` + 1 sentences, at least one of them on each side.
    """
    kinds = []
    for total in range(2, max_sentences + 2):
        for height in range(1, total):
            kinds.append((height, total - height))
    return kinds


class BlockGains:
    """Gains of blocks of sentences, computed in parts that fit into memory."""

    def __init__(
        self,
        source: Document,
        target: Document,
        rough: Sequence[Step],
        embed: Embed,
        settings: AlignmentSettings,
    ) -> None:
        """Use n and m sentences, at least one of each, and a rough path."""
        ratios = []
        for step in rough:
            characters = source.characters(step.source, step.height)
            ratios.append(target.characters(step.target, step.width) / characters)
        scale = float(np.sqrt(np.median(ratios or [1.0])))
        back = [Step(step.target, step.source, step.width, step.height) for step in rough]
        self._source = _Side(
            source, target.vectors, rough, scale=scale, embed=embed, settings=settings
        )
        self._target = _Side(
            target, source.vectors, back, scale=1 / scale, embed=embed, settings=settings
        )
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
    """The runs of sentences of one document; each is embedded once if nodes do not go back."""

    def __init__(
        self,
        document: Document,
        others: Vectors,
        rough: Sequence[Step],
        scale: float,
        embed: Embed,
        settings: AlignmentSettings,
    ) -> None:
        self._document = document
        self._others = others
        self._rough = path_columns(rough, len(document.rows), len(others)).astype(np.int64)
        self._scale = scale
        self._embed = embed
        self._settings = settings
        self._parts: dict[int, _Runs] = {}

    def runs(self, start: int, stop: int) -> _Runs:
        """Return the runs that end at nodes; those of node 0 and before it mean nothing."""
        first = max(start, 0) // _NODES_AT_A_TIME
        numbers = range(first, (stop - 1) // _NODES_AT_A_TIME + 1)
        self._parts = {number: self._part(number) for number in numbers}
        places = np.maximum(np.arange(start, stop), 0) - first * _NODES_AT_A_TIME
        fields = zip(*self._parts.values(), strict=True)
        return _Runs(*[np.concatenate(parts, axis=1)[:, places] for parts in fields])

    def _part(self, number: int) -> _Runs:
        if number in self._parts:
            return self._parts[number]
        document = self._document
        begin = number * _NODES_AT_A_TIME
        end = min(begin + _NODES_AT_A_TIME, len(document.rows) + 1)
        ends = np.maximum(np.arange(begin, end), 1)  # no block ends at node 0
        low = max(int(self._rough[ends[0]]) - REACH, 0)
        nearby = self._others[low : int(self._rough[ends[-1]]) + REACH]
        sizes = []
        for size in range(1, self._settings.max_sentences + 1):
            begins = np.maximum(ends - size, 0)
            vectors = document.vectors[begins]
            if size > 1:
                places = zip(begins.tolist(), ends.tolist(), strict=True)
                vectors = self._embed([document.text(i, j - i) for i, j in places])
            k = min(self._settings.neighbors, len(nearby))
            cosines = nearest_neighbors(vectors, nearby, k).similarities.astype(np.float64)
            distances = 1 - np.clip(cosines, *_NEIGHBORS).mean(axis=1)
            characters = self._scale * (document.ends[ends] - document.ends[begins])
            sizes.append(_Runs(vectors.astype(np.float64), distances, characters))
        return _Runs(*[np.stack(fields) for fields in zip(*sizes, strict=True)])


def _distances(source: _Runs, target: _Runs, i: int, j: int) -> Gains:
    """Compute d of runs of i + 1 and j + 1 sentences that end at c and e nodes, (c, e)."""
    # In float64 and rounded once: cosines must not depend on threads or on positions of texts.
    cosines = (source.vectors[i] @ target.vectors[j].T).astype(np.float32)
    distances: Gains = (1 - cosines) / (source.distances[i, :, None] + target.distances[j])
    return distances


def _length_costs(source: NDArray[np.float64], target: NDArray[np.float64]) -> Gains:
    differences = source[:, None] - target
    costs: Gains = differences**2 / (_CHARACTERS * (source[:, None] + target))
    return costs
