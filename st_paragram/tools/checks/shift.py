"""Detection of sides that are not translations of each other, or shifted by some rows, by cosines of p-sp-mini."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.encoding.find import shipped_folder

Pair = tuple[str, str]

#: The languages that p-sp-mini was trained on.
MODEL_LANGUAGES = frozenset(("ar", "de", "en", "es", "fr", "ru", "tr", "zh"))

_OFFSETS = (-3, -2, -1, 1, 2, 3)
# Minimum share of pairs that are more similar than a random pair, and minimum number of pairs for this check. In our
# texts, the share is 0.91 or more; for unrelated sides, it is 0.5.
_TRANSLATED, _FEWEST_PAIRS = 0.75, 100
# A run of rows is shifted if the mean cosine grows this much when one side is moved, and a text if this share of its
# runs is shifted. In our texts, at most 7 % of the runs are.
_MARGIN, _SHIFTED = 0.05, 0.1


_ROWS, _CHARACTERS = 20_000, 1 << 24  # maximum to read from a text
_RUN, _RUNS = 50, 40  # consecutive rows in a run; number of runs
_LONGEST = 300  # maximum characters of a sentence to use


@dataclass(frozen=True)
class Sample:
    """Runs of 50 consecutive rows, and the number of rows before each run; a short text is one run."""

    starts: Sequence[int]
    runs: Sequence[Sequence[Pair]]

    @property
    def rows(self) -> list[Pair]:
        """All rows."""
        return [row for run in self.runs for row in run]


def take_sample(rows: Iterable[Pair]) -> Sample:
    """Take 40 runs of 50 rows from the first 20,000 rows, or from fewer if lines are long; all rows of a short text."""
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
        """Describe the similarity of the sides."""
        return f"mean cosine {self._cosines.mean():.2f}, of shuffled pairs {self._shuffled.mean():.2f}"

    def unrelated(self) -> bool:
        """Whether pairs are hardly more similar than random texts."""
        better = (self._cosines > self._shuffled) + 0.5 * (self._cosines == self._shuffled)
        return better.size >= _FEWEST_PAIRS and bool(better.mean() < _TRANSLATED)

    def shift(self) -> tuple[int, int, float] | None:
        """Detect a shift: enough runs (at least two, if there are several) fit clearly better with the same shift.

        Returns:
            The shift s, where the second side of row i fits the first side of row i + s; the first shifted row, from 1,
            as far as the sample shows; and the share of shifted runs.
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
        """Return the mean cosine of first sides with second sides `offset` rows later, for each run."""
        size = self._cosines.shape[1]
        first = self._first[:, max(0, -offset) : size - max(0, offset)]
        second = self._second[:, max(0, offset) : size - max(0, -offset)]
        means: NDArray[np.float32] = (first * second).sum(-1).mean(axis=1)
        return means


@cache
def _encoder() -> Encoder:
    return Encoder(shipped_folder())
