"""The filter `overlap`: paraphrases that repeat each other, from which little can be learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from st_paragram.core.settings import setting
from st_paragram.tools.cleaning.base import Row, RowFilter
from st_paragram.tools.cleaning.options import options
from st_paragram.tools.cleaning.trigrams import trigram_overlaps


@options
class Overlap(RowFilter):
    """Drop rows whose two texts share too many word trigrams (Wieting and Gimpel 2018, ParaNMT-50M, section 5).

    The overlap is the number of distinct trigrams that both texts have, divided by that of the text that has fewer;
    `word_hashes.words` says what a word is. A text of fewer than three words overlaps with nothing.
    """

    name: ClassVar[str] = "overlap"
    reasons: ClassVar[tuple[str, ...]] = ("n-gram overlap",)

    max_overlap: float = setting(0.7, "largest share of word trigrams that both texts may have", least=0, most=1)
    lower_case: bool = setting(True, "make no difference between upper and lower case")

    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return "n-gram overlap" for rows above the limit."""
        above = trigram_overlaps(rows, self.lower_case) > self.max_overlap
        return [self.reasons[0] if over else None for over in above.tolist()]
