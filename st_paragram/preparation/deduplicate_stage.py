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
from st_paragram.preparation.row_files import (
    KEY_DIGITS,
    SOURCE,
    Keys,
    group_ranges,
    read_range,
    row_as_seen,
    write_rows,
)
from st_paragram.stages.stage import Stage
from st_paragram.stages.work import write_metadata

VERSION = 1  # of the results: count it up when they change
TASK_BYTES = 1 << 23
DUPLICATE = {Key.PAIR: "duplicate", Key.FIRST: "repeated first side", Key.SECOND: "repeated second side"}


@dataclass(frozen=True)
class DistinctStage(Stage):
    """A task makes the rows of some ranges of keys distinct by these keys and gives them the next stage's keys.

    Of equal rows that of the first text stays; within a text, by one side, a random one. The facts of a task have
    `kept` and `dropped`, by number of the source.

    Attributes:
        before: Whose rows come in; their keys are by `by`.
        by: What makes rows equal.
        copies: How many of equal rows stay; None for all.
        then: What the keys of the rows that go out are made of.
        seed: Of the keys.
        rejects: Leave the rows dropped in files, too.
    """

    name: ClassVar[str] = "distinct"
    before: Stage
    folder: Path
    by: Key
    copies: Copies | None
    then: Key
    seed: int
    rejects: bool
    task_bytes: int = TASK_BYTES

    @property
    def digest(self) -> str:
        """Tells these results from others."""
        before = sorted(path.name for path in self.before.folders)
        how = [
            self.by.value,
            self.copies and self.copies.value,
            self.then.value,
            self.seed,
            self.rejects,
            self.task_bytes,
        ]
        return digest(VERSION, before, how)

    def ranges(self) -> list[tuple[int, int]]:
        """The ranges of keys that each task takes."""
        return group_ranges(tuple(self.before.results()), self.task_bytes)

    def results(self) -> list[Path]:
        """A file of rows per group of ranges."""
        (folder,) = self.folders
        return [folder / f"{task:05d}.rows" for task in range(len(self.ranges()))]

    @property
    def folders(self) -> set[Path]:
        """The one folder."""
        return {self.folder / self.name / self.digest}

    def run(self, task: int) -> None:
        """Make the rows of a group of ranges distinct."""
        started = time.perf_counter()
        result, (begin, end) = self.results()[task], self.ranges()[task]
        rows = read_range(self.before.results(), begin, end)
        keep = _keep(rows, self.copies)
        kept = [row for row, stays in zip(rows, keep, strict=True) if stays]
        lost = [row for row, stays in zip(rows, keep, strict=True) if not stays]
        if self.rejects:
            with atomic(result.with_suffix(".rejects.tsv")) as handle:
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
