"""Removing duplicates from a text, or from a parallel text, in memory: lines are written again byte by byte."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO

import numpy as np
from tqdm import tqdm

from st_paragram.core.text.parallel import unequal, wrong_columns
from st_paragram.core.text.streams import BYTE_ORDER_MARK, decode, read_blocks, stream_name
from st_paragram.core.text.tables import open_columns
from st_paragram.core.words import counted
from st_paragram.errors import TextError
from st_paragram.tools.deduplication.decide import Decisions, decide
from st_paragram.tools.deduplication.keys import keys
from st_paragram.tools.deduplication.settings import DeduplicationSettings, Keep


@dataclass(frozen=True)
class Deduplicated:
    """Rows, and what became of them."""

    files: list[list[bytes]]  # the lines of each file, as they were read
    columns: list[list[str]]  # the texts of rows
    decisions: Decisions

    def write(self, outputs: Sequence[IO[bytes]], removed: IO[bytes] | None = None) -> None:
        """Write the rows that stay to one output for each file that was read, and list the others.

        Args:
            outputs: One for each file.
            removed: Gets rows `line TAB kept line TAB reason TAB text`, with lines from 1, in their order.
        """
        kept = self.decisions.kept.tolist()
        for lines, output in zip(self.files, outputs, strict=True):
            output.writelines(line + b"\n" for line, stays in zip(lines, kept, strict=True) if stays)
        names = ("first", "second") if len(self.columns) == 2 else ("",)
        for row in np.flatnonzero(~self.decisions.kept).tolist() if removed else ():
            other, why = int(self.decisions.kept_row[row]), self.decisions.why(row, names)
            text = "\t".join(column[row] for column in self.columns)
            removed.write(f"{row + 1}\t{other + 1}\t{why}\t{text}\n".encode())  # type: ignore[union-attr]

    def summary(self) -> str:
        """In words how many rows stay, and why the others go."""
        kept, thing = int(self.decisions.kept.sum()), "line" if len(self.columns) == 1 else "pair"
        parts = [f"{count:,} {reason}" for reason, count in self.decisions.counts().items() if count]
        return f"{kept:,} of {counted(len(self.columns[0]), thing)} kept; removed: {', '.join(parts) or 'none'}"


def deduplicate(
    paths: Sequence[str],
    columns: int,
    settings: DeduplicationSettings | None = None,
    names: Sequence[str] = (),
) -> Deduplicated:
    """Find the duplicates in a text, or in a parallel text, in memory.

    Args:
        paths: One file, or the two files of a Moses pair; plain or compressed, or `-`.
        columns: Texts of a row, 1 or 2.
        settings: What counts as a duplicate.
        names: Columns of a table that have the texts, as many as `columns`; none for plain text.

    Raises:
        TextError: A file is missing, empty, cut off or not UTF-8, has a row without two columns, or has another number
            of lines than the other file. The message names file and row.
    """
    settings = settings or DeduplicationSettings()
    files = [_lines(path, names) for path in paths]
    if len({len(lines) for lines in files}) > 1:
        raise unequal(list(map(stream_name, paths)), list(map(len, files)))
    texts = [[line.decode().rstrip("\r") for line in lines] for lines in files]
    for column in texts:
        column[0] = column[0].removeprefix("\ufeff")
    if columns > len(files):
        texts = _sides(stream_name(paths[0]), texts[0])
    sizes = np.sum([np.fromiter(map(len, lines), np.int64) for lines in files], axis=0)
    order = np.argsort(-sizes, kind="stable") if settings.keep is Keep.LONGEST else np.arange(len(sizes))
    return Deduplicated(files, texts, decide(texts, list(keys(texts, settings)), settings, order))


def _lines(path: str, names: Sequence[str]) -> list[bytes]:
    """The lines of a file, all of them UTF-8."""
    name, lines = stream_name(path), list[bytes]()
    with ExitStack() as stack:
        bar = stack.enter_context(tqdm(desc="read", unit="B", unit_scale=True, disable=None, leave=False))
        for block in read_blocks(name, open_columns(path, names, stack)):
            decode(name, block.removeprefix(BYTE_ORDER_MARK) if not lines else block, len(lines) + 1)
            lines += block.split(b"\n")
            bar.update(len(block))
    if not lines:
        raise TextError(f"{name}: empty; give a text with at least one line")
    return lines


def _sides(name: str, lines: Sequence[str]) -> list[list[str]]:
    """The two columns of lines; a blank line has two empty ones."""
    for number, line in enumerate(lines, 1):
        if line.count("\t") != 1 and line.strip():
            raise TextError(wrong_columns(name, number, line))
    pairs = [line.partition("\t") for line in lines]
    return [[pair[0] for pair in pairs], [pair[2] for pair in pairs]]
