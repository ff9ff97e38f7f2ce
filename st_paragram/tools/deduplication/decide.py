"""Which rows go: a row is removed only if it is a duplicate of one that stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from st_paragram.tools.cleaning.text import normalized_key
from st_paragram.tools.deduplication.keys import Hashes, ngrams
from st_paragram.tools.deduplication.settings import DeduplicationSettings, Method

#: In words, why a text is a duplicate.
REASONS = ("exact", "normalized", "minhash")
_EXACT, _NORMALIZED, _MINHASH = range(3)
_COMPARED = 200  # rows with one key: bounds the work on very common keys
_HELD = 1 << 14  # texts whose n-grams are remembered

Links = NDArray[np.int32]
Found = tuple[int, float]  # a reason and the similarity


@dataclass(frozen=True)
class Decisions:
    """What became of n rows."""

    kept_row: NDArray[np.int32]  # (n,): the row that a removed row is a duplicate of; -1 for a row that stays
    reasons: NDArray[np.int8]  # (n, sides): of `REASONS`; -1 for a side that was not needed
    similarities: NDArray[np.float32]  # (n, sides)

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
                number = f" {int(value * 100 + 1e-4) / 100:.2f}" if reason == _MINHASH else ""
                found.append(f"{name} {REASONS[reason]}{number}".strip())
        return ", ".join(found)


def decide(
    columns: Sequence[Sequence[str]],
    keys: Sequence[Hashes],
    settings: DeduplicationSettings,
    order: NDArray[np.int64],
) -> Decisions:
    """Decide which of n rows stay.

    Args:
        columns: One or two texts of each row.
        keys: For each view its keys, see `keys.keys`.
        settings: What counts as a duplicate.
        order: The rows in the order in which they are looked at, int64 (n,).
    """
    count, views = len(columns[0]), settings.views(len(columns))
    kept_row = np.full(count, -1, np.int32)
    reasons = np.full((count, len(columns)), -1, np.int8)
    similarities = np.zeros((count, len(columns)), np.float32)
    kept, compare = bytearray(b"\1") * count, _comparison(columns, settings)
    links = [[_link(column, order) for column in of_view] for of_view in keys]
    linked = np.logical_or.reduce([each >= 0 for of_view in links for each in of_view])
    rows = order[linked[order]].tolist()
    for row in tqdm(rows, desc="compare", unit=" rows", unit_scale=True, disable=None, leave=False):
        pairs = ((view, other) for view, of in zip(views, links, strict=True) for other in _candidates(row, of, kept))
        for view, other in pairs:
            found = [compare(row, other, side) for side in view]
            if all(found):
                kept[row], kept_row[row] = 0, other
                reasons[row, list(view)], similarities[row, list(view)] = zip(*found, strict=True)  # type: ignore[arg-type]
                break
    return Decisions(kept_row, reasons, similarities)


def _link(keys: Hashes, order: NDArray[np.int64]) -> Links:
    """For each row the last row before it, in an order, that has the same key, int32 (n,); -1 for none."""
    ordered = keys[order]
    sorted_ = order[np.argsort(ordered, kind="stable")]
    same = (keys[sorted_[1:]] == keys[sorted_[:-1]]) & (keys[sorted_[1:]] > 0)
    links = np.full(len(keys), -1, np.int32)
    links[sorted_[1:][same]] = sorted_[:-1][same]
    return links


def _candidates(row: int, links: Sequence[Links], kept: bytearray) -> Iterator[int]:
    """The rows that stay and share a key with a row, each once."""
    seen = set[int]()
    for link in links:
        first = other = int(link[row])
        while other >= 0 and not kept[other]:
            other = int(link[other])
        if other != first:
            link[row] = other  # so that no removed row is passed twice
        for _ in range(_COMPARED):
            if other < 0:
                break
            if other not in seen:
                seen.add(other)
                yield other
            other = int(link[other])


def _comparison(
    columns: Sequence[Sequence[str]], settings: DeduplicationSettings
) -> Callable[[int, int, int], Found | None]:
    """Compares a side of two rows: why they are duplicates there; None if they are not."""
    grams = lru_cache(_HELD)(lambda row, side: ngrams(columns[side][row], settings))

    def compare(row: int, other: int, side: int) -> Found | None:
        one, two = columns[side][row], columns[side][other]
        if Method.EXACT in settings.methods:
            if one == two:
                return _EXACT, 1.0
            if settings.normalize:
                key, another = normalized_key(one), normalized_key(two)
                if key == another and (key or one.strip() == two.strip()):
                    return _NORMALIZED, 1.0
        if Method.MINHASH in settings.methods:
            first, second = grams(row, side), grams(other, side)
            shared = len(first & second)
            union = len(first) + len(second) - shared
            if shared and shared >= settings.threshold * union:
                return _MINHASH, shared / union
        return None

    return compare
