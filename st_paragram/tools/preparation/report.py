"""Counts of rows read, kept, dropped and repaired in a preparation, which add up."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from st_paragram.errors import TextError
from st_paragram.tools.cleaning.base import RowRepair
from st_paragram.tools.cleaning.config import STEPS

NUL, INVALID, COLUMNS = "NUL byte", "not UTF-8", "wrong number of columns"
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
    """The counts of one text, or of all together: `rows` is `kept` plus everything in `dropped`,
    minus `repeated`.
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
    """The counts of a preparation; all texts have the same reasons in `dropped`, in the order of
    the filters.
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
        return {
            **vars(self),
            "sources": [source.as_json() for source in self.sources],
            "all": self.total.as_json(),
            "pieces": list(self.pieces),
            "lengths": {language: asdict(each) for language, each in self.lengths.items()},
        }

    def table(self) -> str:
        """Format a plain text table with a column per text, followed by repairs and truncated
        sentences.
        """
        total, columns = self.total, self.sources
        lines = [["", "rows"]]
        if len(columns) > 1:
            lines = [["", *(str(number) for number in range(1, len(columns) + 1)), "all"]]
            columns = [*columns, total]
        lines += [["read", *(f"{each.rows:,}" for each in columns)]]
        for reason in (reason for reason, count in total.dropped.items() if count):
            lines += [[f"- {reason}", *(f"{each.dropped[reason]:,}" for each in columns)]]
        if total.repeated:
            lines += [["+ repeated for balance", *(f"{each.repeated:,}" for each in columns)]]
        lines += [["stored", *(f"{each.kept:,}" for each in columns)]]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = [
            "  ".join(
                [
                    label.ljust(widths[0]),
                    *(cell.rjust(w) for cell, w in zip(cells, widths[1:], strict=True)),
                ]
            )
            for label, *cells in lines
        ]
        table += [f"{number}: {each.name}" for number, each in enumerate(self.sources, 1)]
        notes = REPAIRS | {
            step.repairs: step.note for step in STEPS.values() if issubclass(step, RowRepair)
        }
        table += [f"{count:,} {notes[name]}" for name, count in total.repairs.items() if count]
        if self.cut_sentences:
            table.append(
                f"{self.cut_sentences:,} of {2 * total.kept:,} sentences cut at {self.max_pieces}"
                " pieces"
            )
        if self.vocabulary_size:
            table.append(f"{self.vocabulary_size:,} pieces in the vocabulary")
        for language, each in self.lengths.items():
            characters = (
                f", {each.characters / each.pieces:.2f} characters per piece" if each.pieces else ""
            )
            table.append(
                f"{language}: {each.pieces / each.sentences:.1f} pieces per sentence{characters}"
            )
        return "\n".join(table)

    def check_enough(self) -> None:
        """Refuse a preparation with fewer than two remaining pairs, and list the reasons for
        dropped rows.
        """
        total = self.total
        if total.kept < 2:
            names = ", ".join(source.name for source in self.sources[:3]) + ", ..." * (
                len(self.sources) > 3
            )
            losses = ", ".join(
                f"{count:,} {reason}" for reason, count in total.dropped.items() if count
            )
            raise TextError(
                f"{names}: {total.kept} of {total.rows:,} rows left (dropped: {losses or 'none'}),"
                " at least 2 needed; give more text, or loosen the filters"
            )
