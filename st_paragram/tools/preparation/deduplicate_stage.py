"""Third stage: bring equal rows together, drop repeated ones, leave the rest in the order of their keys.

Rows equal by a key lie in the same range of keys of every file, so a task reads a slice of each file, sorts it and
looks at neighbors: an external sort whose memory is one slice, whatever the size of the text. Near rows are found in
the same way, in a stage for each band: rows with the same key are compared, and those that are near an earlier one go.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import ClassVar

import numpy as np

from st_paragram.core.files import atomic, digest
from st_paragram.tools.cleaning.duplicates import Copies, Key
from st_paragram.tools.cleaning.near_duplicates import Band, NearDuplicates
from st_paragram.tools.preparation.report import PrepareReport
from st_paragram.tools.preparation.row_files import (
    KEY_DIGITS,
    SOURCE,
    Keys,
    RowStage,
    group_ranges,
    read_range,
    rejects_file,
    row_as_seen,
    texts_of,
    write_rows,
)
from st_paragram.tools.stages.metadata import read_metadata, write_metadata

VERSION = 1  # of the results: count it up when they change
TASK_BYTES = 1 << 23
NEAR = "near duplicate"
DUPLICATE = {Key.PAIR: "duplicate", Key.FIRST: "repeated first side", Key.SECOND: "repeated second side"}


@dataclass(frozen=True)
class DeduplicateStage(RowStage):
    """A task deduplicates the rows of some ranges of keys and gives those that stay the next stage's keys.

    Of equal rows that of the first text stays; within a text, where one side makes them equal, the one whose other side
    comes first in the alphabet. The metadata of a task have `kept` and `dropped`, by number of the source.

    Attributes:
        rows: Where rows come from; their keys are by `by`.
        by: What makes rows equal, or may make them near.
        copies: How many of equal rows stay; None for all. Of near rows the band says how many.
        then: What the keys of the outgoing rows are computed from.
        seed: Seed of the keys.
        rejects: Also leave the dropped rows in files.
        task_bytes: Rows, in bytes, that one task works on.
    """

    name: ClassVar[str] = "deduplicate"
    rows: RowStage
    by: Key | Band
    copies: Copies | None
    then: Key | Band
    seed: int
    rejects: bool
    task_bytes: int = TASK_BYTES

    def digests(self) -> list[str]:
        """The one digest."""
        copies = self.copies and self.copies.value
        how = [self.by.value, copies, self.then.value, self.seed, self.rejects, self.task_bytes]
        return [digest(VERSION, sorted(self.rows.digests()), how)]

    @property
    def reason(self) -> str:
        """Why rows are dropped."""
        return NEAR if isinstance(self.by, Band) else DUPLICATE[self.by]

    def ranges(self) -> list[tuple[int, int]]:
        """The ranges of keys that each task takes."""
        return group_ranges(tuple(self.rows.results()), self.task_bytes)

    def results(self) -> list[Path]:
        """A file of rows per group of ranges."""
        folder = self.folder()
        return [folder / f"{task:05d}.rows" for task in range(len(self.ranges()))]

    def report(self) -> PrepareReport:
        """The numbers so far."""
        report = self.rows.report()
        dropped = Counter[str]()
        for path in self.results():
            dropped.update(read_metadata(path)["dropped"])
        for number, source in enumerate(report.sources):
            source.drop(self.reason, dropped[str(number)])
        return report

    def run(self, task: int) -> None:
        """Deduplicate the rows of a group of ranges."""
        started = time.perf_counter()
        result, (begin, end) = self.results()[task], self.ranges()[task]
        rows = read_range(self.rows.results(), begin, end)
        keep = _keep_far(rows, self.by.near) if isinstance(self.by, Band) else _keep(rows, self.copies)
        kept = [row for row, stays in zip(rows, keep, strict=True) if stays]
        lost = [row for row, stays in zip(rows, keep, strict=True) if not stays]
        if self.rejects:
            with atomic(rejects_file(result)) as handle:
                handle.writelines(self.reason.encode() + b"\t" + row_as_seen(row) for row in lost)
        counts = [Counter(int(row[SOURCE]) for row in part) for part in (kept, lost)]
        write_rows(result, kept if self.then is self.by else Keys(self.then, self.seed).again(kept))
        seconds = time.perf_counter() - started
        write_metadata(result, {"rows": len(rows), "kept": counts[0], "dropped": counts[1], "seconds": seconds})


def _keep(rows: Sequence[bytes], copies: Copies | None) -> list[bool]:
    """Whether each of the sorted rows stays; neighbors with one key are equal."""
    if copies is None:
        return [True] * len(rows)
    keep: list[bool] = []
    for count in _run_lengths(rows):
        keep += [copies is Copies.ONE or count == 1] + [False] * (count - 1)
    return keep


def _keep_far(rows: Sequence[bytes], near: NearDuplicates) -> list[bool]:
    """Whether each of the sorted rows stays; those with one key are compared."""
    sizes = np.fromiter(_run_lengths(rows), np.int64)
    compared = np.repeat(sizes > 1, sizes)
    pairs = texts_of([row for row, several in zip(rows, compared.tolist(), strict=True) if several])
    keep = np.ones(len(rows), np.bool_)
    keep[compared] = near.keep(pairs, sizes[sizes > 1].tolist())
    return keep.tolist()


def _run_lengths(rows: Sequence[bytes]) -> Iterator[int]:
    return (sum(1 for _ in group) for _, group in groupby(rows, key=lambda row: row[:KEY_DIGITS]))
