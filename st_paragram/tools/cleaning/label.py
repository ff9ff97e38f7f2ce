"""The filter `label`: rows with a certain value in a further column, a language label for example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from st_paragram.core.settings import setting
from st_paragram.tools.cleaning.base import Row, RowFilter, further_column
from st_paragram.tools.cleaning.options import options


@options
class Label(RowFilter):
    """Keep rows with a given value in a further column."""

    name: ClassVar[str] = "label"
    reasons: ClassVar[tuple[str, ...]] = ("other label",)

    column: int = setting(..., "column of the label; 0: the first column after the two texts", ge=0)
    value: str = setting(..., "required label, compared exactly")

    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return "other label" for rows with another value.

        Raises:
            TextError: A row has too few columns.
        """
        labels = (further_column(row, self.column, self.name) for row in rows)
        return [None if label == self.value else self.reasons[0] for label in labels]
