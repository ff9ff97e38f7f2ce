"""What all kinds of tables share: named columns, rows that are gone through once, and what messages say of them."""

from __future__ import annotations

from difflib import get_close_matches
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from st_paragram.errors import TextError, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class TableForm(str, Enum):
    """The kinds of tables."""

    CSV = "CSV"
    TSV = "TSV"
    JSONL = "JSON lines"
    PARQUET = "Parquet"


class Unreadable(NamedTuple):
    """A row that cannot be read: `seen` says why, `advice` what to do."""

    seen: str
    advice: str


class Table:
    """An open table, of which the rows are gone through once.

    Attributes:
        name: What messages call it.
        columns: The names of its columns; of a table of numbered columns the numbers.
        row: The number of the row that `rows` gave last, from 1; a header does not count.
    """

    name: str
    columns: Sequence[str]
    row: int = 0

    @property
    def size(self) -> int | None:
        """The number of rows, if it is known before they are read."""
        return None

    def rows(self) -> Iterator[Sequence[object] | Unreadable]:
        """Yield the values of the columns wanted, of whatever type, or why a row cannot be read."""
        raise NotImplementedError

    def place(self) -> str:
        """Where the row is that came last."""
        return f"row {self.row}"

    def missing(self, column: str, columns: Sequence[str]) -> Unreadable:
        """A column that is not among those that there are."""
        lower = {name.lower(): name for name in reversed(columns)}
        like = get_close_matches(column.lower(), lower, n=1)
        guess = f" (did you mean {one_line(lower[like[0]], 80)}?)" if like else ""
        seen = f"has no column {one_line(column, 80)!r}{guess}, only {named(columns)}"
        return Unreadable(seen, "use existing column names")

    def refusal(self, found: Unreadable, place: str = "") -> TextError:
        """The error for a row, or for the whole table."""
        return TextError(f"{self.name}: {place or 'it'} {found.seen}; {found.advice}")


def named(columns: Sequence[str], most: int = 12) -> str:
    """Names of columns for a message."""
    shown = ", ".join(one_line(column, 40) for column in columns[:most])
    return f"{shown}, ..." if len(columns) > most else shown or "none"


def places_of(table: Table, wanted: Sequence[str]) -> list[int]:
    """Where the columns wanted are among those of a table that have names.

    Raises:
        TextError: One is not there, or there twice.
    """
    for column in wanted:
        if column not in table.columns:
            raise table.refusal(table.missing(column, table.columns))
        if list(table.columns).count(column) > 1:
            seen = f"has more than one column {one_line(column, 80)!r}"
            raise table.refusal(Unreadable(seen, "give them different names"))
    return [list(table.columns).index(column) for column in wanted]
