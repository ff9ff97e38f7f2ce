"""Length of the sides, in words, or in characters where a script writes no spaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from st_paragram.cleaning.base import Row, RowFilter
from st_paragram.cleaning.code_points import as_verdicts
from st_paragram.cleaning.options import as_choice, check_count, refuse, set_field
from st_paragram.cleaning.unsegmented_scripts import Measures

EMPTY, SHORT, LONG = "empty side", "too short", "too long"
_EMPTY, _SHORT, _LONG = 1, 2, 3  # places in `reasons`, from 1


class LengthOn(str, Enum):
    """The sides that the length filter looks at."""

    BOTH = "both"
    ENGLISH = "english"


@dataclass(frozen=True)
class Length(RowFilter):
    """Drop pairs with a side that is too short or too long.

    The original procedure counts whitespace tokens of the English side, 3 to 100 of them (EMNLP 2022,
    section 3); here both sides count unless `length_on` says otherwise.

    Attributes:
        min_length: Least number of words, or of characters of a side in a script without spaces.
        max_length: Largest number of words.
        max_characters: Largest number of characters, spaces left out, of a side in a script without spaces.
        length_on: The sides looked at, "english" being the first; an empty side is dropped in any case.
    """

    name: ClassVar[str] = "length"
    reasons: ClassVar[tuple[str, ...]] = (EMPTY, SHORT, LONG)

    min_length: int = 3
    max_length: int = 100
    max_characters: int = 200
    length_on: LengthOn = LengthOn.BOTH

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            SettingsError: An option is out of range, or no text could pass.
        """
        for option in ("min_length", "max_length", "max_characters"):
            check_count(self.name, option, getattr(self, option), low=1)
        for option in ("max_length", "max_characters"):
            if (value := getattr(self, option)) < self.min_length:
                refuse(self.name, option, value, f"at least min_length ({self.min_length})")
        set_field(self, "length_on", as_choice(self.name, "length_on", self.length_on, LengthOn))

    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return for each row the reason to drop it, or None to keep it."""
        found = self._reasons([row[0] for row in rows])
        second = self._reasons([row[1] for row in rows])
        if self.length_on is LengthOn.ENGLISH:
            second[second != _EMPTY] = 0
        found = np.where((found == 0) | (second == _EMPTY), second, found)
        return as_verdicts(found, self.reasons)

    def _reasons(self, texts: list[str]) -> NDArray[np.int8]:
        measures = Measures(texts)
        lengths = np.where(measures.unsegmented, measures.characters, measures.words)
        longest = np.where(measures.unsegmented, self.max_characters, self.max_length)
        reasons = np.zeros(len(texts), np.int8)
        reasons[lengths > longest] = _LONG
        reasons[lengths < self.min_length] = _SHORT
        reasons[measures.characters == 0] = _EMPTY
        return reasons
