"""Counts of rows read, kept, dropped and repaired in a preparation, which add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from st_paragram.errors import TextError
from st_paragram.tools.cleaning.base import RowRepair
from st_paragram.tools.cleaning.config import STEPS

NUL = "NUL byte"
INVALID = "not UTF-8"
COLUMNS = "wrong number of columns"
NOT_TAKEN = "over the cap"
#: Fields of `ReadCounts` that count repaired characters, in words.
REPAIRS = {
    "trailing_returns": "lines that ended in a carriage return (removed)",
    "inner_returns": "carriage returns inside lines (replaced by spaces)",
    "line_separators": "other line-ending characters inside lines (replaced by spaces)",
    "byte_order_marks": "byte order marks (removed)",
}


@dataclass
class SourceReport:
    """The counts of one text, or of all together.

    `rows` is `kept` plus everything in `dropped`, minus `repeated`.
    """

    name: str  # name of the file, or "all"
    languages: str = ""  # "en-es"
    rows: int = 0  # rows read
    kept: int = 0  # pairs in the store
    # rows by reason; of equal pairs, the first text's is kept
    dropped: Counter[str] = field(default_factory=Counter)
    repeated: int = 0  # copies added to balance languages
    # characters by `REPAIRS`, rows by `RowRepair.repairs`
    repairs: Counter[str] = field(default_factory=Counter)

    def drop(self, reason: str, count: int) -> None:
        """Count rows that are no longer kept; a reason without rows gets a count of 0."""
        self.dropped[reason] += count
        self.kept -= count

    def as_json(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        return vars(self) | {"dropped": dict(self.dropped), "repairs": dict(self.repairs)}


@dataclass
class LanguageLengths:
    """Numbers of sentences, pieces, and characters (before truncation) of a language in a store."""

    sentences: int = 0
    pieces: int = 0
    characters: int = 0


@dataclass
class PrepareReport:
    """The counts of a preparation.

    All texts have the same reasons in `dropped`, in the order of the filters.
    """

    sources: list[SourceReport]
    vocabulary_size: int = 0
    pieces: tuple[int, ...] = (0, 0)  # stored pieces of side a and side b
    # shows languages with short pieces
    lengths: dict[str, LanguageLengths] = field(default_factory=dict)
    max_pieces: int = 0  # maximum pieces per sentence
    cut_sentences: int = 0  # truncated sentences on both sides

    @property
    def total(self) -> SourceReport:
        """The sum over the texts."""
        total = SourceReport("all")
        for source in self.sources:
            total.rows += source.rows
            total.kept += source.kept
            total.repeated += source.repeated
            total.dropped.update(source.dropped)  # keeps counts of zero
            total.repairs.update(source.repairs)
        return total

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values, to be stored with the pairs."""
        sources = [source.as_json() for source in self.sources]
        lengths = {language: asdict(counts) for language, counts in self.lengths.items()}
        return {
            **vars(self),
            "sources": sources,
            "all": self.total.as_json(),
            "pieces": list(self.pieces),
            "lengths": lengths,
        }

    def table(self, kept: str = "stored") -> str:
        """Format a plain text table with a column per text, followed by notes.

        `kept` is the label of the remaining rows.
        """
        return "\n".join([*self._count_lines(kept), *self._note_lines()])

    def _count_lines(self, kept: str) -> list[str]:
        total = self.total
        columns = self.sources
        header = ["", "rows"]
        if len(columns) > 1:
            header = ["", *[str(number + 1) for number in range(len(columns))], "all"]
            columns = [*columns, total]

        def counts(label: str, values: Iterable[int]) -> list[str]:
            return [label, *[f"{value:,}" for value in values]]

        table = [header, counts("read", [column.rows for column in columns])]
        for reason, count in total.dropped.items():
            if count:
                table.append(counts(f"- {reason}", [column.dropped[reason] for column in columns]))
        if total.repeated:
            table.append(counts("+ repeated for balance", [column.repeated for column in columns]))
        table.append(counts(kept, [column.kept for column in columns]))
        widths = [max([len(row[place]) for row in table]) for place in range(len(header))]
        lines = []
        for label, *cells in table:
            padded = [label.ljust(widths[0])]
            for cell, width in zip(cells, widths[1:], strict=True):
                padded.append(cell.rjust(width))
            lines.append("  ".join(padded))
        return lines

    def _note_lines(self) -> list[str]:
        total = self.total
        lines = [f"{number}: {source.name}" for number, source in enumerate(self.sources, 1)]
        notes = dict(REPAIRS)
        for step in STEPS.values():
            if issubclass(step, RowRepair):
                notes[step.repairs] = step.note
        lines += [f"{count:,} {notes[name]}" for name, count in total.repairs.items() if count]
        if self.cut_sentences:
            lines.append(
                f"{self.cut_sentences:,} of {2 * total.kept:,} sentences cut at {self.max_pieces}"
                " tokens"
            )
        if self.vocabulary_size:
            lines.append(f"{self.vocabulary_size:,} tokens in the vocabulary")
        for language, counts in self.lengths.items():
            line = f"{language}: {counts.pieces / counts.sentences:.1f} tokens per sentence"
            if counts.pieces:
                line += f", {counts.characters / counts.pieces:.2f} characters per token"
            lines.append(line)
        return lines

    def check_enough(self) -> None:
        """Refuse a preparation with fewer than two remaining pairs; name the reasons."""
        total = self.total
        if total.kept >= 2:
            return
        names = [source.name for source in self.sources[:3]]
        if len(self.sources) > 3:
            names.append("...")
        losses = [f"{count:,} {reason}" for reason, count in total.dropped.items() if count]
        raise TextError(
            f"{', '.join(names)}: {total.kept:,} of {total.rows:,} rows left (dropped:"
            f" {', '.join(losses) or 'none'}), at least 2 needed; give more text, or loosen the"
            " filters"
        )
