"""What a step of cleaning is: a filter gives a reason for each row that must go, a repair fixes the text of rows."""

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
"""Two texts in their original case, words parted by single spaces; then whatever further columns the text has."""

_Options = TypeVar("_Options")
_Choice = TypeVar("_Choice")
AnyOf = Annotated[
    tuple[_Choice, ...],
    BeforeValidator(lambda value: tuple(dict.fromkeys(value if isinstance(value, (tuple, list)) else (value,)))),
]
"""Choices, each once, in the order given; a single one need not be in a list."""


@dataclass_transform(frozen_default=True)
def options(cls: type[_Options]) -> type[_Options]:
    """Make a class of `settings`, whose errors begin with the name of the step: `ratio: max is 0.5; ...`."""
    return settings(cls, f"{cls.name}: ")  # type: ignore[attr-defined]


class RowStep(ABC):
    """A filter or a repair, whose options are the fields of its class.

    Steps travel to worker processes, so what is costly to load is loaded on first use and not pickled.

    Attributes:
        name: The name of the step in a list of cleaning steps.
        reasons: All reasons for which it drops rows, in the order of reports; no two steps share one.
    """

    name: ClassVar[str]
    reasons: ClassVar[tuple[str, ...]] = ()

    def identity(self) -> dict[str, Any]:
        """All that the results depend on, as JSON values: the options, and digests of files that are read."""
        return dict(to_jsonable_python(asdict(self)))  # type: ignore[call-overload]


class RowFilter(RowStep):
    """A step that drops rows."""

    @abstractmethod
    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return for each row the reason to drop it, or None to keep it."""


class RowRepair(RowStep):
    """A step that changes the text of rows; reports count the changed rows under its name, with `note` to explain."""

    note: ClassVar[str]

    @abstractmethod
    def repair(self, rows: Sequence[Row]) -> list[Row]:
        """Return as many rows, in their order; those that are not changed are the same objects."""


def apply_steps(steps: Sequence[RowStep], rows: Sequence[Row]) -> tuple[list[Row], list[str | None], Counter[str]]:
    """Run steps one after the other, each over the rows that are left.

    Returns:
        The rows, a dropped one as the filter that dropped it saw it; for each row the reason, or None if it is kept;
        and how many rows each repair changed.
    """
    rows, repaired = list(rows), Counter[str]()
    reasons: list[str | None] = [None] * len(rows)
    for step in steps:
        left = [place for place, reason in enumerate(reasons) if reason is None]
        seen = [rows[place] for place in left]
        if isinstance(step, RowRepair):
            for place, row in zip(left, step.repair(seen), strict=True):
                repaired[step.name] += row is not rows[place]
                rows[place] = row
        elif isinstance(step, RowFilter):
            for place, reason in zip(left, step.reject(seen), strict=True):
                reasons[place] = reason
    return rows, reasons, repaired
