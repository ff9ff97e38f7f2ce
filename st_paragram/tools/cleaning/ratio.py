"""The filter `ratio`: sides of very different length, one of which says more than the other, or something else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from st_paragram.core.settings import setting
from st_paragram.tools.cleaning.base import Row, RowFilter
from st_paragram.tools.cleaning.code_points import as_verdicts
from st_paragram.tools.cleaning.options import options
from st_paragram.tools.cleaning.unsegmented_scripts import Measures

LENGTH_RATIO = "length ratio"
_WORD = 5  # letters: letters that count as a word where words cannot be counted


@options
class Ratio(RowFilter):
    """Drop pairs whose longer side has more words than `max` times the words of the shorter side plus `slack`.

    If a side is in a script without spaces between words, every five letters of both sides count as a word; a Han
    character counts as three letters and a kana as two, their usual value in translations.
    """

    name: ClassVar[str] = "ratio"
    reasons: ClassVar[tuple[str, ...]] = (LENGTH_RATIO,)

    max: float = setting(2.5, "maximum ratio of the two sides' numbers of words", ge=1)
    slack: float = setting(3.0, "words allowed on top of the ratio, for short sentences", ge=0)

    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return for each row the reason to drop it, or None to keep it."""
        first, second = Measures([row[0] for row in rows]), Measures([row[1] for row in rows])
        one, other = first.words.astype(np.float64), second.words.astype(np.float64)
        if (letterwise := first.unsegmented | second.unsegmented).any():
            one = np.where(letterwise, first.letters() / _WORD, one)
            other = np.where(letterwise, second.letters() / _WORD, other)
        different = np.maximum(one, other) > self.max * np.minimum(one, other) + self.slack
        return as_verdicts(different, self.reasons)
