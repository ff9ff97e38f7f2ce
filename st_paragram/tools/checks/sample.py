"""A sample of a parallel text: runs of rows that follow each other, spread over its beginning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Pair = tuple[str, str]

ROWS, CHARACTERS = 20_000, 1 << 24  # as many are read at most
RUN = 50
_RUNS = 40
_LONGEST = 300  # characters of a text that are looked at


@dataclass(frozen=True)
class Sample:
    """Runs of `RUN` rows that follow each other, and how many rows come before each; a short text is one run."""

    starts: Sequence[int]
    runs: Sequence[Sequence[Pair]]

    @property
    def rows(self) -> list[Pair]:
        """All rows."""
        return [row for run in self.runs for row in run]

    def side(self, side: int) -> list[str]:
        """The texts of one side."""
        return [row[side] for run in self.runs for row in run]


def take_sample(rows: Iterable[Pair]) -> Sample:
    """Take 40 runs of 50 rows out of the first 20,000 rows, fewer where lines are long; of a short text all rows."""
    head, left = [], CHARACTERS
    for first, second in rows:
        head.append((first[:_LONGEST], second[:_LONGEST]))
        left -= len(first) + len(second)
        if len(head) == ROWS or left <= 0:
            break
    if len(head) < 2 * RUN:
        return Sample([0], [head])
    count = min(_RUNS, len(head) // RUN)
    starts = [index * (len(head) - RUN) // (count - 1) for index in range(count)]
    return Sample(starts, [head[start : start + RUN] for start in starts])
