"""Whether the sides of a sample are translations of each other, or rows of one side are shifted.

The sides are compared by the cosines of p-sp-mini where it knows both languages, and by their lengths elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.encoding.find import shipped_folder
from st_paragram.tools.checks.sample import RUN, Sample
from st_paragram.tools.cleaning.unsegmented_scripts import Measures

MODEL_LANGUAGES = frozenset(("ar", "de", "en", "es", "fr", "ru", "tr", "zh"))
"""What p-sp-mini was trained on."""

_OFFSETS = (-3, -2, -1, 1, 2, 3)


@dataclass(frozen=True)
class _Limits:
    """Limits of a measure.

    Attributes:
        better: Least probability that a pair is more similar than a pair drawn at random. Texts that we have are at
            0.91 or more by cosine; by length, at 0.6 or more if lengths vary. Unrelated sides are at 0.5.
        pairs: Fewest pairs for which `better` counts.
        margin: By how much the mean similarity of a run must grow for it to count as shifted; in no text that we have
            does it grow so for the same offset in more than 7 % of the runs.
        shifted: Least share of the runs.
    """

    better: float
    pairs: int
    margin: float
    shifted: float


_LIMITS = {"cosine": _Limits(0.75, 100, 0.05, 0.1), "length": _Limits(0.57, 200, 0.15, 0.3)}
_LEAST_SPREAD = 0.25  # standard deviation of the logarithms of lengths


@dataclass(frozen=True)
class Shift:
    """A side that is some rows ahead.

    Attributes:
        rows: How many rows; the second side of row i fits the first side of row i + `rows`.
        first_row: Where it begins, as far as the sample shows, from 1.
        share: Of the runs of the sample that are shifted.
    """

    rows: int
    first_row: int
    share: float


class Comparison:
    """Similarities of the sides of a sample, larger for better pairs.

    Attributes:
        by: "cosine" or "length".
    """

    def __init__(self, sample: Sample, by: str) -> None:
        self.by, self._sample, self._limits = by, sample, _LIMITS[by]
        make = _embeddings if by == "cosine" else _lengths
        runs, size = len(sample.runs), len(sample.runs[0])
        #: Features of both sides: (runs, rows of a run, dimension).
        self._first, self._second = (make(sample.side(side)).reshape(runs, size, -1) for side in (0, 1))
        self._true = self._similar(self._first, self._second)
        partners = self._second.reshape(self._true.size, -1)
        partners = partners[np.random.default_rng(0).permutation(len(partners))]
        self._shuffled = self._similar(self._first, partners.reshape(self._second.shape))

    def __str__(self) -> str:
        """How similar the sides are, in words."""
        if self.by == "length":
            return f"correlation of their lengths {float((self._first * self._second).mean()):.2f}"
        return f"mean cosine {float(self._true.mean()):.2f}, of shuffled pairs {float(self._shuffled.mean()):.2f}"

    def unrelated(self) -> bool:
        """Whether pairs are hardly more similar than texts drawn at random."""
        if self._true.size < self._limits.pairs or (self.by == "length" and self._spread() < _LEAST_SPREAD):
            return False
        better = np.mean((self._true > self._shuffled) + 0.5 * (self._true == self._shuffled))
        return bool(better < self._limits.better)

    def shift(self) -> Shift | None:
        """The shift of the sides, if enough runs, and two if there are, fit clearly better when moved by the same."""
        if self._true.shape[1] < RUN:
            return None
        least = self._true.mean(axis=1) + self._limits.margin
        moved = {offset: self._moved(offset) for offset in _OFFSETS}
        offset = max(moved, key=lambda each: (int((moved[each] > least).sum()), float(moved[each].sum())))
        better = moved[offset] > least
        if better.sum() < min(2, len(better)) or better.mean() < self._limits.shifted:
            return None
        return Shift(-offset, self._sample.starts[int(better.argmax())] + 1, float(better.mean()))

    def _moved(self, offset: int) -> NDArray[Any]:
        """Mean similarities of first sides with the second sides `offset` rows later, for each run."""
        size = self._first.shape[1]
        first = self._first[:, max(0, -offset) : size - max(0, offset)]
        return self._similar(first, self._second[:, max(0, offset) : size - max(0, -offset)]).mean(axis=1)

    def _similar(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
        return (first * second).sum(-1) if self.by == "cosine" else -np.abs(first - second)[..., 0]

    def _spread(self) -> float:
        return min(float(np.log1p(Measures(self._sample.side(side)).letters()).std()) for side in (0, 1))


def _embeddings(texts: Sequence[str]) -> NDArray[Any]:
    return _encoder().encode(texts, normalize_embeddings=True)


def _lengths(texts: Sequence[str]) -> NDArray[Any]:
    """Logarithms of the lengths, as deviations from their mean in standard deviations, (N, 1)."""
    lengths = np.log1p(Measures(texts).letters())
    return ((lengths - lengths.mean()) / max(float(lengths.std()), 1e-6))[:, None]


@cache
def _encoder() -> Encoder:
    return Encoder(shipped_folder())
