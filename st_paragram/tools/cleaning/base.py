"""Base classes of cleaning steps: filters, which drop rows, and repairs, which change rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BeforeValidator
from pydantic_core import to_jsonable_python
from typing_extensions import dataclass_transform

from st_paragram.core.settings import settings

Row = tuple[str, ...]
"""Two texts in their original case, with single spaces, followed by further columns."""

_Options = TypeVar("_Options")
_Choice = TypeVar("_Choice")


def _distinct(value: Any) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(value)) if isinstance(value, tuple | list) else (value,)


AnyOf = Annotated[tuple[_Choice, ...], BeforeValidator(_distinct)]
"""Distinct choices in the given order; a single choice need not be in a list."""


@dataclass_transform(frozen_default=True)
def options(cls: type[_Options]) -> type[_Options]:
    """Make a class of `settings` whose errors begin with the name of the step."""
    return settings(cls, f"{cls.name}: ")  # type: ignore[attr-defined]


class RowStep(ABC):
    """A filter or a repair, whose options are the fields of its class.

    Steps are sent to worker processes, so expensive data are loaded on first use and not pickled.

    Attributes:
        name: The name of the step in a list of cleaning steps.
        reasons: All reasons for which it drops rows, in the order of reports; distinct among all
            steps.
    """

    name: ClassVar[str]
    reasons: ClassVar[tuple[str, ...]] = ()

    def identity(self) -> dict[str, Any]:
        """Return all that the results depend on, as JSON values: options, digests of files."""
        return dict(to_jsonable_python(asdict(self)))  # type: ignore[call-overload]


class RowFilter(RowStep):
    """A step that drops rows; it defines `reason`, or `reject` to look at many rows at once."""

    def reason(self, row: Row) -> str | None:
        """Return the reason to drop a row, or None to keep it."""
        raise NotImplementedError

    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return, for each row, the reason to drop it, or None to keep it."""
        return [self.reason(row) for row in rows]


class RowRepair(RowStep):
    """A step that changes rows; reports count them as `repairs`, explained by `note`.

    A step may also be a filter. Then it sees the repaired rows.
    """

    repairs: ClassVar[str]
    note: ClassVar[str]

    @abstractmethod
    def repair(self, row: Row) -> Row:
        """Return the repaired row; an unchanged row is the same object."""


def apply_steps(
    steps: Sequence[RowStep], rows: Sequence[Row]
) -> tuple[list[Row], list[str | None], Counter[str]]:
    """Run steps one after another, each on the remaining rows.

    Returns:
        The rows (a dropped row as its filter saw it), the reason for each row, or None if it is
        kept, and the number of rows that each repair changed.
    """
    rows = list(rows)
    repaired = Counter[str]()
    reasons: list[str | None] = [None] * len(rows)
    for step in steps:
        places = [place for place, reason in enumerate(reasons) if reason is None]
        remaining = [rows[place] for place in places]
        if isinstance(step, RowRepair):
            remaining = [step.repair(row) for row in remaining]
            for place, row in zip(places, remaining, strict=True):
                repaired[step.repairs] += row is not rows[place]
                rows[place] = row
        if isinstance(step, RowFilter):
            for place, reason in zip(places, step.reject(remaining), strict=True):
                reasons[place] = reason
    return rows, reasons, repaired
