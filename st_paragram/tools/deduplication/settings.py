"""Settings of deduplication."""

from __future__ import annotations

import math
from typing import Literal

from st_paragram.core.settings import setting, settings
from st_paragram.errors import SettingsError

_FOUND = 0.99  # minimum probability that two texts exactly at the threshold are compared
_OF_EQUAL_SETS = 16  # minimum hashes per key if only equal sets are wanted

Method = Literal["exact", "minhash"]


@settings
class DeduplicationSettings:
    """What counts as a duplicate, and which duplicate is kept."""

    methods: tuple[Method, ...] = ("exact", "minhash")
    sides: Literal["both", "either", "first", "second"] = setting(
        "both", "sides of a pair that must match those of another pair for the pair to be removed"
    )
    keep: Literal["first", "longest"] = setting(
        "first", "duplicate to keep: the first, or the longest (in bytes)"
    )
    normalize: bool = setting(
        True,
        "exact duplicates have the same words, numbers and symbols",
        option_help=(
            "require exact duplicates to match in every character; by default, case, spaces and"
            " punctuation are ignored"
        ),
    )
    threshold: float = setting(
        0.8,
        "minhash: minimum Jaccard similarity of near-duplicates, the share of n-grams in common, in"
        " the same order",
        gt=0,
        le=1,
    )
    unit: Literal["word", "character"] = setting("word", "minhash: unit of n-grams")
    ngram: int | None = setting(
        None, "minhash: length of an n-gram (default: 1 for words, 5 for characters)", ge=1, le=100
    )
    bands: int = setting(
        20, "minhash: keys per text; more keys save comparisons but take more memory", ge=1, le=200
    )

    def __post_init__(self) -> None:
        """Check that there is a method."""
        if not self.methods:
            raise SettingsError("no deduplication method; give exact or minhash")

    @property
    def minima(self) -> int:
        """The maximum number of minimum hashes per key that finds texts at the threshold.

        Sets of similarity s share a key in one of the bands with probability 1 - (1 - s**r)**bands
        (Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, chapter 3).
        """
        if self.threshold == 1:
            return _OF_EQUAL_SETS
        needed = 1 - (1 - _FOUND) ** (1 / self.bands)
        return max(1, math.floor(math.log(needed) / math.log(self.threshold)))

    def views(self, columns: int) -> tuple[tuple[int, ...], ...]:
        """Return groups of the 1 or 2 sides.

        A row is a duplicate if all sides of one group are duplicates.
        """
        if columns == 1 or self.sides == "first":
            return ((0,),)
        if self.sides == "second":
            return ((1,),)
        return ((0, 1),) if self.sides == "both" else ((0,), (1,))
