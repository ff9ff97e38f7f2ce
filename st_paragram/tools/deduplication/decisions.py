"""Third stage: which rows stay.

Rows are looked at one after another, and a row goes if it is a duplicate of one that stays. So no row goes that is only
like other removed rows, and of what stays no two rows are duplicates that have a key in common. A row is compared with
the last 200 rows that stay under each of its keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from st_paragram.tools.cleaning.normalized_key import normalized_key
from st_paragram.tools.deduplication.links import Links
from st_paragram.tools.deduplication.settings import DeduplicationSettings, Method

EXACT, NORMALIZED, MINHASH = range(3)
#: In words, why a text is a duplicate.
REASONS = ("exact", "normalized", "minhash")

_COMPARED = 200  # rows with one key: bounds the work on very common keys
_HELD = 1 << 14  # sets of n-grams in memory
_BLOCK = 1 << 16

#: A reason and the similarity.
Found = tuple[int, float]


@dataclass(frozen=True)
class View:
    """A group of sides that must be duplicates together.

    Attributes:
        sides: Their numbers.
        links: For each column of keys the rows that are linked, see `links.link`.
    """

    sides: tuple[int, ...]
    links: Sequence[Links]


@dataclass(frozen=True)
class Comparison:
    """Compares two rows side by side.

    Attributes:
        settings: What counts as a duplicate.
        texts: Gives the texts of a row.
        ngrams: Gives the n-grams of a row's side.
    """

    settings: DeduplicationSettings
    texts: Callable[[int], Sequence[str]]
    ngrams: Callable[[int, int], frozenset[int]]

    def all(self, row: int, other: int, sides: Sequence[int]) -> list[Found] | None:
        """Why two rows are duplicates on each of the sides; None if they are not on one of them."""
        found = []
        for side in sides:
            if (why := self._one(row, other, side)) is None:
                return None
            found.append(why)
        return found

    def _one(self, row: int, other: int, side: int) -> Found | None:
        settings = self.settings
        if Method.EXACT in settings.methods and (why := self._equal(row, other, side)):
            return why
        if Method.MINHASH in settings.methods:
            one, two = self.ngrams(row, side), self.ngrams(other, side)
            shared = len(one & two)
            union = len(one) + len(two) - shared
            if shared and shared >= settings.threshold * union:
                return MINHASH, shared / union
        return None

    def _equal(self, row: int, other: int, side: int) -> Found | None:
        one, two = self.texts(row)[side], self.texts(other)[side]
        if one == two:
            return EXACT, 1.0
        if not self.settings.normalize:
            return None
        key, another = normalized_key(one), normalized_key(two)
        return (NORMALIZED, 1.0) if key == another and (key or one.strip() == two.strip()) else None


@dataclass(frozen=True)
class Decisions:
    """What became of n rows.

    Attributes:
        kept_row: Row that stays and that a removed row is a duplicate of, int32 (n,); -1 for a row that stays.
        reasons: Why, for each side: an index of `REASONS`, or -1 for a side that was not needed, int8 (n, sides).
        similarities: For each side, float32 (n, sides).
    """

    kept_row: NDArray[np.int32]
    reasons: NDArray[np.int8]
    similarities: NDArray[np.float32]

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which rows stay, bool (n,)."""
        return self.kept_row < 0

    def counts(self) -> dict[str, int]:
        """Removed rows by reason; of two sides, the reason that comes later in `REASONS` counts."""
        numbers = np.bincount(self.reasons.max(axis=1)[~self.kept], minlength=len(REASONS))
        return dict(zip(REASONS, numbers.tolist(), strict=True))

    def why(self, row: int, sides: Sequence[str]) -> str:
        """In words why a row was removed: "first exact, second minhash 0.87"; one side needs no name."""
        found = []
        for name, reason, value in zip(sides, self.reasons[row].tolist(), self.similarities[row].tolist(), strict=True):
            if reason >= 0:
                number = f" {int(value * 100 + 1e-4) / 100:.2f}" if reason >= MINHASH else ""
                found.append(f"{name} {REASONS[reason]}{number}".strip())
        return ", ".join(found)


def decide(
    count: int, views: Sequence[View], comparison: Comparison, order: NDArray[np.int64] | None, columns: int
) -> Decisions:
    """Decide which rows stay.

    Args:
        count: Number of rows, n.
        views: Groups of sides; one of them is enough. Their links are changed.
        comparison: Compares rows.
        order: Rows in the order in which they are looked at, int64 (n,); None: as they are.
        columns: Sides of a row.
    """
    kept_row = np.full(count, -1, np.int32)
    reasons, similarities = np.full((count, columns), -1, np.int8), np.zeros((count, columns), np.float32)
    kept = bytearray(b"\1") * count
    candidates = [_Candidates(view, kept) for view in views]
    comparison = _remembering(comparison)
    for row in tqdm(
        _linked(views, order, count), desc="compare", unit="row", unit_scale=True, disable=None, leave=False
    ):
        for each in candidates:
            for other in each.of(row):
                if found := comparison.all(row, other, each.view.sides):
                    kept[row], kept_row[row] = 0, other
                    sides = list(each.view.sides)
                    reasons[row, sides], similarities[row, sides] = zip(*found, strict=True)
                    break
            if not kept[row]:
                break
    return Decisions(kept_row, reasons, similarities)


def _remembering(comparison: Comparison) -> Comparison:
    """The same comparison, which does not read again what it has just read."""
    remember = lru_cache(_HELD)
    return Comparison(comparison.settings, remember(comparison.texts), remember(comparison.ngrams))


def _linked(views: Sequence[View], order: NDArray[np.int64] | None, count: int) -> Iterator[int]:
    """The rows that may be duplicates of an earlier row, in their order; all others stay."""
    linked = np.zeros(count, np.bool_)
    for view in views:
        for links in view.links:
            for begin in range(0, count, _BLOCK):
                linked[begin : begin + _BLOCK] |= links[begin : begin + _BLOCK] >= 0
    rows = np.flatnonzero(linked) if order is None else order[linked[order]]
    for begin in range(0, len(rows), _BLOCK):
        yield from rows[begin : begin + _BLOCK].tolist()


class _Candidates:
    """The rows that stay and may be what a row is a duplicate of."""

    def __init__(self, view: View, kept: bytearray) -> None:
        self.view, self._kept = view, kept

    def of(self, row: int) -> Iterator[int]:
        """Each once; those with the same key first, from the first column of keys to the last."""
        seen = set[int]()
        for links in self.view.links:
            yield from self._new(self._before(links, row), links, seen)

    def _before(self, links: Links, row: int) -> int:
        """The last row that stays with the same key; no removed row is passed twice in a chain."""
        first = before = int(links[row])
        while before >= 0 and not self._kept[before]:
            before = int(links[before])
        if before != first:
            links[row] = before
        return before

    def _new(self, row: int, links: Links, seen: set[int]) -> Iterator[int]:
        """A row and those before it in the same chain, all of which stay."""
        for _ in range(_COMPARED):
            if row < 0:
                return
            if row not in seen:
                seen.add(row)
                yield row
            row = int(links[row])
