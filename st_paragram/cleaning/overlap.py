"""The filter `overlap`: paraphrases that repeat most of each other teach little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from st_paragram.cleaning.base import Row, RowFilter
from st_paragram.cleaning.options import check_number
from st_paragram.cleaning.trigrams import trigram_overlaps


@dataclass(frozen=True)
class Overlap(RowFilter):
    """Drop rows whose two texts share too many word trigrams (Wieting and Gimpel 2018, ParaNMT-50M, section 5).

    The overlap is the share of the distinct trigrams of the text that has fewer of them which the other text has too;
    `word_hashes.words` says what a word is. Texts of less than three words overlap with nothing.

    Attributes:
        max_overlap: Largest share that stays, 0 to 1.
        lower_case: Make no difference between upper and lower case.
    """

    name: ClassVar[str] = "overlap"
    reasons: ClassVar[tuple[str, ...]] = ("n-gram overlap",)

    max_overlap: float = 0.7
    lower_case: bool = True

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            SettingsError: The limit is no share.
        """
        check_number(self.name, "max_overlap", self.max_overlap, 0, 1)

    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return "n-gram overlap" for rows above the limit."""
        above = trigram_overlaps(rows, self.lower_case) > self.max_overlap
        return [self.reasons[0] if over else None for over in above.tolist()]
