"""Which repeated rows go: the last step of cleaning, carried out over the whole text by the preparation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from st_paragram.cleaning.options import as_choice, as_choices, set_field


class Key(str, Enum):
    """What makes two rows the same: both sides, or one."""

    PAIR = "pair"
    FIRST = "first"
    SECOND = "second"


class Copies(str, Enum):
    """How many rows of the same key stay: one, or, as with `sort | uniq -u` in the authors' script, none."""

    ONE = "one"
    NONE = "none"


@dataclass(frozen=True)
class Duplicates:
    """Which repeated rows go.

    Attributes:
        on: What makes rows the same, in the order in which it is applied; nothing keeps all rows.
        copies: "one" or "none" of the rows with the same key stays.
    """

    on: tuple[Key, ...] = ()
    copies: Copies = Copies.ONE

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            SettingsError: An unknown key or number of copies.
        """
        set_field(self, "on", as_choices("duplicates", "on", self.on, Key) if self.on != () else ())
        set_field(self, "copies", as_choice("duplicates", "copies", self.copies, Copies))

    def as_json(self) -> dict[str, Any]:
        """The options as JSON values."""
        return {"on": [key.value for key in self.on], "copies": self.copies.value}
