"""What is to be seen in a pair store, in numbers; `scan` finds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)


def quantiles(counts: NDArray[np.int64], shares: Sequence[float]) -> NDArray[np.int64]:
    """Places of a histogram that shares of what it counts do not exceed; the share 0 gives the first place in use."""
    reached = np.cumsum(counts)
    wanted = np.maximum(np.ceil(np.array(shares) * reached[-1] - 1e-9), 1)
    return np.searchsorted(reached, wanted)


@dataclass(frozen=True)
class SideInspection:
    """One side of a store.

    Attributes:
        language: Its name.
        pieces: Pieces of all sentences.
        lengths: How many sentences have 0, 1, 2, ... pieces, int64.
        at_limit: Share of sentences as long as the store's limit: what was cut, and what just fits.
        unknown: Share of sentences of which the vocabulary knows nothing: only the unknown piece is left, or the piece
            that is nothing but the beginning of a word.
        used: Share of the vocabulary's ordinary pieces that occur.
    """

    language: str
    pieces: int
    lengths: NDArray[np.int64]
    at_limit: float
    unknown: float
    used: float

    @property
    def mean(self) -> float:
        """Pieces per sentence."""
        return self.pieces / int(self.lengths.sum())

    def quantiles(self) -> dict[float, int]:
        """Lengths that the shares `QUANTILES` of the sentences do not exceed."""
        return {share: int(length) for share, length in zip(QUANTILES, quantiles(self.lengths, QUANTILES), strict=True)}


@dataclass(frozen=True)
class VocabularyUse:
    """How both sides together use the vocabulary.

    Attributes:
        size: Pieces in all, those for unknown text and control included.
        ordinary: Pieces without them.
        used: Ordinary pieces that occur.
        once: Ordinary pieces that occur once.
        frequencies: Occurrences of the ordinary pieces, from the most frequent down, int64.
        most_frequent: The first of them, with their occurrences.
    """

    size: int
    ordinary: int
    used: int
    once: int
    frequencies: NDArray[np.int64]
    most_frequent: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class StoreInspection:
    """What is to be seen in a store.

    Attributes:
        path: The file.
        size: Its bytes.
        pairs: Pairs.
        max_length: Where sentences were cut, in pieces, if they were.
        lower_case: The text is lower-cased.
        segmentation: Word segmentation before sentencepiece.
        seed: Of the shuffle.
        settings: What preparation noted, its report included.
        sides: Both sides.
        vocabulary: Use of the vocabulary.
        joint: How many pairs have i pieces on side a and j on side b, int64; the last row and column stand for all
            longer ones.
        ratio: Quantiles of the length of side b over that of side a.
        examples: Number in the store and texts of pairs drawn at random, in their order.
    """

    path: str
    size: int
    pairs: int
    max_length: int | None
    lower_case: bool
    segmentation: str
    seed: int
    settings: dict[str, Any]
    sides: tuple[SideInspection, SideInspection]
    vocabulary: VocabularyUse
    joint: NDArray[np.int64]
    ratio: dict[float, float]
    examples: tuple[tuple[int, str, str], ...]

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON values, but for `joint` and the frequencies of single pieces."""
        values = {name: value for name, value in self.__dict__.items() if name not in ("joint", "sides", "vocabulary")}
        values["languages"] = [side.language for side in self.sides]
        values["ratio"] = {str(share): value for share, value in self.ratio.items()}
        values["examples"] = [list(example) for example in self.examples]
        values["sides"] = [
            asdict(side)
            | {
                "lengths": side.lengths.tolist(),
                "mean": side.mean,
                "quantiles": {str(share): length for share, length in side.quantiles().items()},
            }
            for side in self.sides
        ]
        use = {name: value for name, value in asdict(self.vocabulary).items() if name != "frequencies"}
        values["vocabulary"] = use | {"most_frequent": [list(piece) for piece in self.vocabulary.most_frequent]}
        return values
