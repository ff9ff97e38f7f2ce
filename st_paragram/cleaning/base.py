"""What a filter is: it looks at rows of parallel text and gives a reason for each that must go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from enum import Enum
from typing import Any, ClassVar

Row = tuple[str, ...]
"""Two texts, words parted by single spaces, in their original case; then whatever further columns the text has."""


class RowFilter(ABC):
    """A filter of rows. Subclasses are frozen dataclasses: their fields are the options, checked when they are made.

    Filters travel to worker processes, so what is costly to load is loaded on first use and not pickled.

    Attributes:
        name: What the filter is called in a list of filters.
        reasons: All reasons `reject` may give, in the order of reports; no two filters share one.
    """

    name: ClassVar[str]
    reasons: ClassVar[tuple[str, ...]]

    @abstractmethod
    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return for each row the reason to drop it, or None to keep it."""

    def identity(self) -> dict[str, Any]:
        """All that the verdicts depend on, as JSON values: the options, and digests of files that are read.

        A filter whose identity is unchanged need not run again.
        """
        options = asdict(self)  # type: ignore[call-overload]
        return {name: value.value if isinstance(value, Enum) else value for name, value in options.items()}
