"""Whether sides of a sample are translations of each other, or one is some rows ahead, by cosines of p-sp-mini."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.encoding.find import shipped_folder

Pair = tuple[str, str]

#: What p-sp-mini was trained on.
MODEL_LANGUAGES = frozenset(("ar", "de", "en", "es", "fr", "ru", "tr", "zh"))

_OFFSETS = (-3, -2, -1, 1, 2, 3)
# Least share of pairs that are more similar than a pair drawn at random, and fewest pairs for which it counts. Our
# texts have 0.91 or more, and unrelated sides have 0.5.
_TRANSLATED, _FEWEST_PAIRS = 0.75, 100
# A run of rows is shifted if the mean cosine grows so much when one side is moved, and a text if such a share of its
# runs is. In our texts, at most 7 % of the runs are.
_MARGIN, _SHIFTED = 0.05, 0.1


_ROWS, _CHARACTERS = 20_000, 1 << 24  # of a text are read at most
_RUN, _RUNS = 50, 40  # rows that follow each other; how many runs of them
_LONGEST = 300  # characters of a sentence that are looked at


@dataclass(frozen=True)
class Sample:
    """Runs of 50 rows that follow each other, and how many rows come before each; a short text is one run."""

    starts: Sequence[int]
    runs: Sequence[Sequence[Pair]]

    @property
    def rows(self) -> list[Pair]:
        """All rows."""
        return [row for run in self.runs for row in run]


def take_sample(rows: Iterable[Pair]) -> Sample:
    """Take 40 runs of 50 rows out of the first 20,000 rows, fewer where lines are long; of a short text all rows."""
    head, left = [], _CHARACTERS
    for first, second in rows:
        head.append((first[:_LONGEST], second[:_LONGEST]))
        left -= len(first) + len(second)
        if len(head) == _ROWS or left <= 0:
            break
    if len(head) < 2 * _RUN:
        return Sample([0], [head])
    count = min(_RUNS, len(head) // _RUN)
    starts = [index * (len(head) - _RUN) // (count - 1) for index in range(count)]
    return Sample(starts, [head[start : start + _RUN] for start in starts])


class Similarity:
    """Cosines of the sides of a sample."""

    def __init__(self, sample: Sample) -> None:
        self._starts = sample.starts
        shape = len(sample.runs), len(sample.runs[0]), -1
        self._first, self._second = (  # (runs, rows per run, dimension)
            _encoder().encode(side, normalize_embeddings=True).reshape(shape) for side in zip(*sample.rows, strict=True)
        )
        self._cosines = (self._first * self._second).sum(-1)
        others = self._second.reshape(self._cosines.size, -1)
        others = others[np.random.default_rng(0).permutation(len(others))]
        self._shuffled = (self._first * others.reshape(self._second.shape)).sum(-1)

    def __str__(self) -> str:
        """How similar the sides are."""
        return f"mean cosine {self._cosines.mean():.2f}, of shuffled pairs {self._shuffled.mean():.2f}"

    def unrelated(self) -> bool:
        """Whether pairs are hardly more similar than texts drawn at random."""
        better = (self._cosines > self._shuffled) + 0.5 * (self._cosines == self._shuffled)
        return better.size >= _FEWEST_PAIRS and bool(better.mean() < _TRANSLATED)

    def shift(self) -> tuple[int, int, float] | None:
        """The shift of the sides, if enough runs, and two if there are, fit clearly better when moved by the same.

        Returns:
            Rows s, the second side of row i fitting the first side of row i + s; the first row shifted, from 1, as far
            as the sample shows; and the share of the runs that are shifted.
        """
        if self._cosines.shape[1] < _RUN:
            return None
        least = self._cosines.mean(axis=1) + _MARGIN
        moved = {offset: self._moved(offset) for offset in _OFFSETS}
        offset = max(moved, key=lambda each: (int((moved[each] > least).sum()), float(moved[each].sum())))
        better = moved[offset] > least
        if better.sum() < min(2, len(better)) or better.mean() < _SHIFTED:
            return None
        return -offset, self._starts[int(better.argmax())] + 1, float(better.mean())

    def _moved(self, offset: int) -> NDArray[np.float32]:
        """Mean cosines of first sides with the second sides `offset` rows later, for each run."""
        size = self._cosines.shape[1]
        first = self._first[:, max(0, -offset) : size - max(0, offset)]
        second = self._second[:, max(0, offset) : size - max(0, -offset)]
        means: NDArray[np.float32] = (first * second).sum(-1).mean(axis=1)
        return means


@cache
def _encoder() -> Encoder:
    return Encoder(shipped_folder())
