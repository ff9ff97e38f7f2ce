"""Third stage: bring equal rows together, drop repeated ones, leave the rest in the order of their keys.

Rows equal by a key lie in the same range of keys of every file, so a task reads a slice of each file, sorts it and
looks at neighbours: an external sort whose memory is one slice, whatever the size of the text.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import ClassVar

from st_paragram.cleaning.duplicates import Copies, Key
from st_paragram.files import atomic, digest
from st_paragram.preparation.report import PrepareReport
from st_paragram.preparation.row_files import (
    KEY_DIGITS,
    SOURCE,
    Keys,
    RowStage,
    group_ranges,
    read_range,
    rejects_file,
    row_as_seen,
    write_rows,
)
from st_paragram.stages.metadata import read_metadata, write_metadata

VERSION = 1  # of the results: count it up when they change
TASK_BYTES = 1 << 23
DUPLICATE = {Key.PAIR: "duplicate", Key.FIRST: "repeated first side", Key.SECOND: "repeated second side"}


@dataclass(frozen=True)
class DeduplicateStage(RowStage):
    """A task deduplicates the rows of some ranges of keys and gives those that stay the next stage's keys.

    Of equal rows that of the first text stays; within a text, by one side, a random one. The metadata of a task have
    `kept` and `dropped`, by number of the source.

    Attributes:
        rows: Where rows come from; their keys are by `by`.
        by: What makes rows equal.
        copies: How many of equal rows stay; None for all.
        then: What the keys of the rows that go out are made of.
        seed: Of the keys.
        rejects: Leave the rows dropped in files, too.
        task_bytes: Rows, in bytes, that one task works on.
    """

    name: ClassVar[str] = "deduplicate"
    rows: RowStage
    by: Key
    copies: Copies | None
    then: Key
    seed: int
    rejects: bool
    task_bytes: int = TASK_BYTES

    def digests(self) -> list[str]:
        """The one digest."""
        copies = self.copies and self.copies.value
        how = [self.by.value, copies, self.then.value, self.seed, self.rejects, self.task_bytes]
        return [digest(VERSION, sorted(self.rows.digests()), how)]

    def ranges(self) -> list[tuple[int, int]]:
        """The ranges of keys that each task takes."""
        return group_ranges(tuple(self.rows.results()), self.task_bytes)

    def results(self) -> list[Path]:
        """A file of rows per group of ranges."""
        folder = self.folder()
        return [folder / f"{task:05d}.rows" for task in range(len(self.ranges()))]

    def report(self) -> PrepareReport:
        """The numbers so far."""
        report, reason = self.rows.report(), DUPLICATE[self.by]
        dropped = Counter[str]()
        for path in self.results():
            dropped.update(read_metadata(path)["dropped"])
        for number, source in enumerate(report.sources):
            source.drop(reason, dropped[str(number)])
        return report

    def run(self, task: int) -> None:
        """Deduplicate the rows of a group of ranges."""
        started = time.perf_counter()
        result, (begin, end) = self.results()[task], self.ranges()[task]
        rows = read_range(self.rows.results(), begin, end)
        keep = _keep(rows, self.copies)
        kept = [row for row, stays in zip(rows, keep, strict=True) if stays]
        lost = [row for row, stays in zip(rows, keep, strict=True) if not stays]
        if self.rejects:
            with atomic(rejects_file(result)) as handle:
                handle.writelines(DUPLICATE[self.by].encode() + b"\t" + row_as_seen(row) for row in lost)
        counts = [Counter(int(row[SOURCE]) for row in part) for part in (kept, lost)]
        write_rows(result, kept if self.then is self.by else Keys(self.then, self.seed).again(kept))
        seconds = time.perf_counter() - started
        write_metadata(result, {"rows": len(rows), "kept": counts[0], "dropped": counts[1], "seconds": seconds})


def _keep(rows: Sequence[bytes], copies: Copies | None) -> list[bool]:
    """Whether each of the sorted rows stays; neighbours with one key are equal."""
    if copies is None:
        return [True] * len(rows)
    keep: list[bool] = []
    for count in _run_lengths(rows):
        keep += [copies is Copies.ONE or count == 1] + [False] * (count - 1)
    return keep


def _run_lengths(rows: Sequence[bytes]) -> Iterator[int]:
    return (sum(1 for _ in group) for _, group in groupby(rows, key=lambda row: row[:KEY_DIGITS]))
