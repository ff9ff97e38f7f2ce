"""The filter `length`: sides that are too short or too long, in words, or in characters where words have no spaces."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.settings import setting
from st_paragram.errors import SettingsError
from st_paragram.tools.cleaning.base import Row, RowFilter
from st_paragram.tools.cleaning.code_points import as_verdicts
from st_paragram.tools.cleaning.options import options
from st_paragram.tools.cleaning.unsegmented_scripts import Measures

EMPTY, SHORT, LONG = "empty side", "too short", "too long"
_EMPTY, _SHORT, _LONG = 1, 2, 3  # places in `reasons`, from 1


class LengthOn(str, Enum):
    """The sides whose length counts."""

    BOTH = "both"
    ENGLISH = "english"


@options
class Length(RowFilter):
    """Drop pairs with a side that is too short or too long.

    The original procedure allows 3 to 100 whitespace tokens on the English side (EMNLP 2022, section 3); here the
    length of both sides counts unless `length_on` says otherwise.
    """

    name: ClassVar[str] = "length"
    reasons: ClassVar[tuple[str, ...]] = (EMPTY, SHORT, LONG)

    min_length: int = setting(3, "minimum words per side, or characters in a script without spaces", ge=1)
    max_length: int = setting(100, "maximum words per side", ge=1)
    max_characters: int = setting(200, "maximum characters per side in a script without spaces", ge=1)
    length_on: LengthOn = setting(
        LengthOn.BOTH,
        "sides whose length is checked; english is the first side; rows with an empty side are always dropped",
    )

    def __post_init__(self) -> None:
        """Check that the limits leave something.

        Raises:
            SettingsError: No text could pass.
        """
        for option in ("max_length", "max_characters"):
            if (value := getattr(self, option)) < self.min_length:
                raise SettingsError(f"{option} is {value}; it must be at least min_length ({self.min_length})")

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
