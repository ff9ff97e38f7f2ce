"""Which repeated rows go. The preparation drops them from the whole text, after all steps of the cleaning."""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar

from st_paragram.core.settings import setting
from st_paragram.tools.cleaning.options import AnyOf, options, plain


class Key(str, Enum):
    """What makes two rows the same: both sides, or one of them."""

    PAIR = "pair"
    FIRST = "first"
    SECOND = "second"


class Copies(str, Enum):
    """How many of the rows that are the same stay: one, or none, as with `sort | uniq -u` in the authors' script."""

    ONE = "one"
    NONE = "none"


@options
class Duplicates:
    """Which repeated rows go."""

    name: ClassVar[str] = "duplicates"

    on: AnyOf[Key] = setting((Key.PAIR,), "criteria for equal rows, applied in order; an empty list keeps all rows")
    copies: Copies = setting(Copies.ONE, "equal rows to keep")

    def as_json(self) -> dict[str, Any]:
        """The options as JSON values."""
        return {"on": plain(self.on), "copies": plain(self.copies)}
