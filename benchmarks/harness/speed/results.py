"""What was measured: rounds of a peer, rows of a table, and their summary."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any


class Measure(str, Enum):
    """What a table shows of a round: work done in a second, or seconds for a unit of work."""

    RATE = "rate"
    TIME = "time"


@dataclass(frozen=True)
class Round:
    """One timed round: `seconds` of wall time for `work` units (sentences, pairs, bytes, ...)."""

    seconds: float
    work: float

    def value(self, measure: Measure) -> float:
        """Units a second, or seconds a unit."""
        return self.work / self.seconds if measure is Measure.RATE else self.seconds / self.work


@dataclass
class Row:
    """A peer in a table: its rounds in order, or the reason why there are none.

    `note` says what was run, or why it was not; `columns` holds further cells (already formatted) by their heading.
    """

    name: str
    rounds: list[Round] = field(default_factory=list)
    note: str = ""
    columns: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Spread:
    """Median, smallest and largest value, and the quartiles between which half of the values lie."""

    median: float
    low: float
    high: float
    first_quartile: float
    third_quartile: float

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        """The spread of at least one value; quartiles interpolate between the values."""
        quartiles = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
        return cls(statistics.median(values), min(values), max(values), quartiles[0], quartiles[2])


@dataclass
class Table:
    """Rows measured side by side.

    Args:
        key: short name, that of its files.
        title: what it shows.
        unit: of the values, times `scale`.
        measure: what a value is.
        rows: one a peer.
        reference: name of the row that the others are compared with; None: nothing is compared.
        scale: factor between the value in units and seconds and the number shown (1e3 for milliseconds).
        notes: sentences to print below.
    """

    key: str
    title: str
    unit: str
    measure: Measure
    rows: list[Row]
    reference: str | None = None
    scale: float = 1.0
    notes: list[str] = field(default_factory=list)

    def row(self, name: str) -> Row:
        """The row of that name.

        Raises:
            KeyError: there is none.
        """
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    def values(self, row: Row) -> list[float]:
        """The numbers shown for each round."""
        return [self.scale * round_.value(self.measure) for round_ in row.rounds]

    def spread(self, row: Row) -> Spread | None:
        """Summary of a row; None if it was not measured."""
        values = self.values(row)
        return Spread.of(values) if values else None

    def ratio(self, row: Row) -> Spread | None:
        """How many times as fast as this row the reference is, round by round; None where that cannot be said."""
        if self.reference is None:
            return None
        reference = self.row(self.reference)
        pairs = list(zip(reference.rounds, row.rounds, strict=False))
        ratios = [ours.value(Measure.RATE) / theirs.value(Measure.RATE) for ours, theirs in pairs]
        return Spread.of(ratios) if ratios else None

    def as_json(self) -> dict[str, Any]:
        """Everything, every round and the summaries, as JSON values."""
        values = asdict(self) | {"measure": self.measure.value}
        for cells, row in zip(values["rows"], self.rows, strict=True):
            for name, spread in (("summary", self.spread(row)), ("reference_over_this", self.ratio(row))):
                cells[name] = asdict(spread) if spread else None
        return values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Table:
        """Read back `as_json`."""
        rows = [
            Row(row["name"], [Round(**round_) for round_ in row["rounds"]], row["note"], row["columns"])
            for row in values["rows"]
        ]
        return cls(**(values | {"rows": rows, "measure": Measure(values["measure"])}))


@dataclass(frozen=True)
class Unit:
    """A table to make: its key, and what makes it."""

    key: str
    make: Callable[[], Table]
