"""The filter `language`: sides that are not in their language, according to fastText's language identification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from st_paragram.core.settings import setting
from st_paragram.tools.cleaning.base import Row, RowFilter, options
from st_paragram.tools.cleaning.languages import short_code
from st_paragram.tools.language_identification import identify, labels


@options
class Language(RowFilter):
    """Drop pairs with a side in a wrong language, according to fastText's model lid.176.

    A side is in a wrong language if the right language, together with languages that the model confuses with it, has a
    probability below `min_probability`, and another language at least `min_other`. It needs the extra `lid`.
    """

    name: ClassVar[str] = "language"
    reasons: ClassVar[tuple[str, ...]] = ("wrong language",)

    languages: tuple[str, str]
    sides: Literal["both", "first", "second"] = setting("both", "sides to check")
    min_probability: float = setting(0.1, "minimum probability of the right language", ge=0, le=1)
    min_other: float = setting(0.7, "minimum probability of a wrong language; below it, the row is kept", ge=0, le=1)
    min_characters: int = setting(30, "minimum characters of a side to check, because names have no language", ge=0)

    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return "wrong language" for rows with such a side."""
        sides = {"both": (0, 1), "first": (0,), "second": (1,)}[self.sides]
        right = [labels(short_code(code)) for code in self.languages]
        return [self.reasons[0] if any(self._wrong(row[side], right[side]) for side in sides) else None for row in rows]

    def _wrong(self, text: str, right: tuple[str, ...]) -> bool:
        if len(text) < self.min_characters:
            return False
        found = identify(text)
        probability = sum(share for label, share in found if label in right)
        other = max((share for label, share in found if label not in right), default=0.0)
        return probability < self.min_probability and other >= self.min_other
