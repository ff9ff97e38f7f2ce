"""What an inspection of a pair store finds, in numbers; `scan` counts them."""

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
        language: its name.
        pieces: the number of pieces of all sentences.
        lengths: how many sentences have 0, 1, 2, ... pieces, int64.
        at_limit: share of sentences as long as the store's limit: those that were cut, and those that just fit.
        unknown: share of sentences of which the tokenizer knows nothing: only the unknown piece is left, or pieces of
            white space alone.
        used: share of the ordinary pieces of the side's tokenizer that occur on this side.
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
class TokenizerUse:
    """A tokenizer, and how much of its vocabulary occurs in the sentences that it encoded.

    Attributes:
        kind: its kind.
        options: its options.
        size: pieces in all, those for unknown text and control included.
        ordinary: pieces without them.
        used: ordinary pieces that occur.
        once: ordinary pieces that occur once.
        frequencies: occurrences of the ordinary pieces, from the most frequent down, int64.
        most_frequent: the first of them, with their occurrences.
    """

    kind: str
    options: dict[str, Any]
    size: int
    ordinary: int
    used: int
    once: int
    frequencies: NDArray[np.int64]
    most_frequent: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class LabelUse:
    """The labels of rows.

    Attributes:
        least: the smallest.
        mean: of all rows.
        greatest: the largest.
        counts: rows of each label, in order; None if there are too many different ones.
    """

    least: float
    mean: float
    greatest: float
    counts: dict[float, int] | None


@dataclass(frozen=True)
class Example:
    """A row of a store.

    Attributes:
        row: its number, from 0.
        languages: of both sentences.
        texts: both sentences.
        label: its label, if rows have labels.
    """

    row: int
    languages: tuple[str, str]
    texts: tuple[str, str]
    label: float | None = None


@dataclass(frozen=True)
class StoreInspection:
    """What an inspection of a store finds.

    Attributes:
        path: the file.
        size: of the file, in bytes.
        pairs: the number of pairs.
        row_languages: how many pairs are of each pair of languages.
        max_length: where sentences were cut, in pieces, if they were.
        seed: of the shuffle.
        settings: what the preparation noted, its report included.
        sides: both sides.
        tokenizers: the tokenizer that both sides share, or that of each side.
        joint: how many pairs have i pieces on side a and j on side b, int64; the last row and column stand for all
            longer ones.
        ratio: quantiles of the length of side b over that of side a.
        labels: the labels of rows, if they have any.
        examples: pairs drawn at random, in their order.
    """

    path: str
    size: int
    pairs: int
    row_languages: dict[tuple[str, str], int]
    max_length: int | None
    seed: int
    settings: dict[str, Any]
    sides: tuple[SideInspection, SideInspection]
    tokenizers: tuple[TokenizerUse, ...]
    joint: NDArray[np.int64]
    ratio: dict[float, float]
    labels: LabelUse | None
    examples: tuple[Example, ...]

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON values, but for `joint` and the frequencies of single pieces."""
        others = ("joint", "sides", "tokenizers", "labels", "examples")
        values = {name: value for name, value in self.__dict__.items() if name not in others}
        values["languages"] = [side.language for side in self.sides]
        values["row_languages"] = [[*languages, count] for languages, count in self.row_languages.items()]
        values["ratio"] = {str(share): value for share, value in self.ratio.items()}
        values["sides"] = [_side_as_json(side) for side in self.sides]
        values["tokenizers"] = [_tokenizer_as_json(use) for use in self.tokenizers]
        values["labels"] = None if self.labels is None else _labels_as_json(self.labels)
        values["examples"] = [asdict(example) for example in self.examples]
        return values


def _side_as_json(side: SideInspection) -> dict[str, Any]:
    shares = {str(share): length for share, length in side.quantiles().items()}
    return asdict(side) | {"lengths": side.lengths.tolist(), "mean": side.mean, "quantiles": shares}


def _tokenizer_as_json(use: TokenizerUse) -> dict[str, Any]:
    values = {name: value for name, value in asdict(use).items() if name != "frequencies"}
    return values | {"most_frequent": [list(piece) for piece in use.most_frequent]}


def _labels_as_json(use: LabelUse) -> dict[str, Any]:
    counts = None if use.counts is None else {f"{label:g}": count for label, count in use.counts.items()}
    return asdict(use) | {"counts": counts}
