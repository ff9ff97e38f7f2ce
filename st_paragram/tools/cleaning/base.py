"""What a step of cleaning is: a filter gives a reason for each row that must go, a repair fixes the text of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, ClassVar

from st_paragram.errors import TextError
from st_paragram.tools.cleaning.options import plain

Row = tuple[str, ...]
"""Two texts in their original case, words parted by single spaces; then whatever further columns the text has."""


class RowStep(ABC):
    """A filter or a repair. Its options are the fields of its class, see `options.options`.

    Steps travel to worker processes, so what is costly to load is loaded on first use and not pickled.

    Attributes:
        name: The name of the step in a list of cleaning steps.
        reasons: All reasons for which it drops rows, in the order of reports; no two steps share one.
    """

    name: ClassVar[str]
    reasons: ClassVar[tuple[str, ...]] = ()

    def identity(self) -> dict[str, Any]:
        """All that the results depend on, as JSON values: the options, and digests of files that are read.

        A step whose identity is unchanged need not run again.
        """
        return {name: plain(value) for name, value in asdict(self).items()}  # type: ignore[call-overload]


class RowFilter(RowStep):
    """A step that drops rows."""

    @abstractmethod
    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return for each row the reason to drop it, or None to keep it."""


class RowRepair(RowStep):
    """A step that changes the text of rows; reports count the changed rows under its name.

    Attributes:
        note: What it repairs, for reports.
    """

    note: ClassVar[str]

    @abstractmethod
    def repair(self, rows: Sequence[Row]) -> list[Row]:
        """Return as many rows, in their order; those that are not changed are the same objects."""


def further_column(row: Row, column: int, wanted: str) -> str:
    """A column after the two texts.

    Args:
        row: The row.
        column: Its number; 0 is the first column after the texts.
        wanted: The filter that needs it, for the message.

    Raises:
        TextError: The row has no such column.
    """
    try:
        return row[2 + column]
    except IndexError:
        shown = " | ".join(text if len(text) <= 40 else text[:37] + "..." for text in row[:2])
        seen = f"a row has {len(row)} columns ({shown!r})"
        raise TextError(
            f"{wanted}: {seen}, but column {column} after the two texts is needed; check the columns"
        ) from None
