"""Removing duplicates from end to end: lines, keys, links, decisions, outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from st_paragram.core.words import counted
from st_paragram.tools.deduplication.decisions import Comparison, Decisions, View, decide
from st_paragram.tools.deduplication.keys import KeyStage, Ngrams, rows_of_a_task
from st_paragram.tools.deduplication.lines import Lines, write_lines
from st_paragram.tools.deduplication.links import link
from st_paragram.tools.deduplication.settings import DeduplicationSettings, Keep
from st_paragram.tools.stages.executors import Executor, LocalExecutor

_SIDE_NAMES = {1: ("",), 2: ("first", "second")}


@dataclass(frozen=True)
class Deduplicated:
    """Rows, and what became of them.

    Attributes:
        lines: The rows.
        decisions: What became of them.
    """

    lines: Lines
    decisions: Decisions

    def write(self, outputs: Sequence[IO[bytes]], removed: IO[bytes] | None = None) -> None:
        """Write the rows that stay, byte by byte, to one output for each file that was read; list the others.

        Args:
            outputs: One for each file.
            removed: Gets rows `line TAB kept line TAB reason TAB text`, with lines from 1, in their order.
        """
        self.lines.write(self.decisions.kept, outputs)
        names = _SIDE_NAMES[self.lines.columns]
        for row in np.flatnonzero(~self.decisions.kept).tolist() if removed else ():
            kept, why = int(self.decisions.kept_row[row]), self.decisions.why(row, names)
            text = "\t".join(self.lines.texts(row))
            removed.write(f"{row + 1}\t{kept + 1}\t{why}\t{text}\n".encode())  # type: ignore[union-attr]

    def summary(self) -> str:
        """In words how many rows stay, and why the others go."""
        kept, thing = int(self.decisions.kept.sum()), "line" if self.lines.columns == 1 else "pair"
        parts = [f"{count:,} {reason}" for reason, count in self.decisions.counts().items() if count]
        return f"{kept:,} of {counted(len(self.lines), thing)} kept; removed: {', '.join(parts) or 'none'}"


def deduplicate(
    paths: Sequence[str],
    columns: int,
    folder: Path,
    settings: DeduplicationSettings | None = None,
    executor: Executor | None = None,
    names: Sequence[str] = (),
) -> Deduplicated:
    """Find the duplicates in a text, or in a parallel text.

    Memory: about 20 bytes per row, and what sorting 4 million keys takes. All else is on disk and mapped.

    Args:
        paths: One file, or the two files of a Moses pair; plain or compressed, or `-`.
        columns: Texts of a row, 1 or 2.
        folder: An empty folder to work in, on a disk with room for the text and for 8 bytes for each key and n-gram.
        settings: What counts as a duplicate.
        executor: Who does the work; changes nothing in the result.
        names: Columns of a table that have the texts, as many as `columns`; none for plain text.

    Raises:
        TextError: A text cannot be read, see `lines.write_lines`.
    """
    settings, executor = settings or DeduplicationSettings(), executor or LocalExecutor()
    lines = write_lines(paths, columns, folder, names)
    stage = KeyStage(folder, lines, settings, rows_of_a_task(len(lines)))
    executor.run([stage])
    order = _longest_first(lines) if settings.keep is Keep.LONGEST else None
    ranks = None if order is None else np.argsort(order).astype(np.int32)
    linked = []
    for column in tqdm(range(stage.columns), desc="sort", unit=" keys", disable=None, leave=False):
        keys, blocks = partial(stage.keys, column), len(stage.results())
        linked.append(link(keys, blocks, len(lines), ranks, folder / f"links-{column}.npy"))
    views = settings.views(columns)
    each = len(linked) // len(views)
    found = [View(view, linked[number * each : (number + 1) * each]) for number, view in enumerate(views)]
    comparison = Comparison(settings, lines.texts, Ngrams(stage).of)
    return Deduplicated(lines, decide(len(lines), found, comparison, order, columns))


def _longest_first(lines: Lines) -> NDArray[np.int64]:
    """All rows, the longest first; of equally long ones the earlier, int64 (n,)."""
    sizes = np.sum([np.diff(ends) for ends in lines.ends], axis=0)
    return np.argsort(-sizes, kind="stable")
