"""What a preparation read, kept, dropped and repaired, in numbers that add up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from st_paragram.data.filters import DropReason
from st_paragram.data.text import ReadCounts
from st_paragram.errors import TextError

_REPAIRS = {
    "trailing_returns": "lines that ended in a carriage return (removed)",
    "inner_returns": "carriage returns inside lines (made spaces)",
    "line_separators": "other line-ending characters inside lines (made spaces)",
    "byte_order_marks": "byte order marks (removed)",
}


@dataclass
class SourceReport:
    """The numbers of one text, or of all together: `rows` is `kept` plus everything in `dropped`.

    Attributes:
        name: The file, or "all".
        rows: Rows read.
        kept: Pairs in the store.
        dropped: Rows dropped, by reason. Of equal pairs in several texts the first text's one stays.
        repairs: Fields of `ReadCounts` that tell of repaired characters.
    """

    name: str
    rows: int = 0
    kept: int = 0
    dropped: Counter[DropReason] = field(default_factory=Counter)
    repairs: Counter[str] = field(default_factory=Counter)

    def add_read(self, counts: ReadCounts) -> None:
        """Add what reading counted."""
        self.rows += counts.rows
        self.dropped[DropReason.NUL] += counts.nul_rows
        self.dropped[DropReason.INVALID] += counts.invalid_rows
        for name in _REPAIRS:
            self.repairs[name] += getattr(counts, name)

    def as_json(self) -> dict[str, Any]:
        """Return the numbers as JSON values, every reason and repair named."""
        dropped = {reason.value: self.dropped[reason] for reason in DropReason}
        repairs = {name: self.repairs[name] for name in _REPAIRS}
        return {
            "name": self.name,
            "rows": self.rows,
            "kept": self.kept,
            "dropped": dropped,
            "repairs": repairs,
        }


@dataclass
class PrepareReport:
    """The numbers of a preparation.

    Attributes:
        sources: One report per text.
        vocabulary_size: Pieces in the vocabulary.
        pieces: Pieces stored, for side a and side b.
        max_pieces: Where sentences were cut.
        cut_sentences: Sentences (of either side) that were cut there.
    """

    sources: list[SourceReport]
    vocabulary_size: int = 0
    pieces: tuple[int, int] = (0, 0)
    max_pieces: int = 0
    cut_sentences: int = 0

    @property
    def total(self) -> SourceReport:
        """The sum over the texts."""
        total = SourceReport("all")
        for source in self.sources:
            total.rows += source.rows
            total.kept += source.kept
            total.dropped += source.dropped
            total.repairs += source.repairs
        return total

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values, to be stored with the pairs."""
        return {
            "sources": [source.as_json() for source in self.sources],
            "all": self.total.as_json(),
            "vocabulary_size": self.vocabulary_size,
            "pieces": list(self.pieces),
            "max_pieces": self.max_pieces,
            "cut_sentences": self.cut_sentences,
        }

    def table(self) -> str:
        """Render a plain text table, a line per text, and below it what was repaired and cut."""
        rows = [*self.sources, self.total] if len(self.sources) > 1 else self.sources
        header = ["rows", "kept", *(reason.value for reason in DropReason)]
        body = [
            [f"{n:,}" for n in (row.rows, row.kept, *(row.dropped[reason] for reason in DropReason))] for row in rows
        ]
        widths = [max(map(len, column)) for column in zip(header, *body, strict=True)]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)) + f"  {name}"
            for cells, name in zip([header, *body], ["text", *(row.name for row in rows)], strict=True)
        ]
        return "\n".join([*lines, *self._notes()])

    def _notes(self) -> list[str]:
        total = self.total
        notes = [f"{total.repairs[name]:,} {text}" for name, text in _REPAIRS.items() if total.repairs[name]]
        if self.cut_sentences:
            notes.append(f"{self.cut_sentences:,} of {2 * total.kept:,} sentences cut at {self.max_pieces} pieces")
        if self.vocabulary_size:
            notes.append(f"{self.vocabulary_size:,} pieces in the vocabulary")
        if total.kept:
            means = " and ".join(f"{pieces / total.kept:.1f}" for pieces in self.pieces)
            notes.append(f"{means} pieces per sentence on the two sides")
        return notes

    def check_enough(self, left: int) -> None:
        """Refuse a preparation that leaves fewer than two pairs.

        Raises:
            TextError: With the names of the texts and where their rows went.
        """
        if left >= 2:
            return
        total = self.total
        names = ", ".join(source.name for source in self.sources[:3])
        if len(self.sources) > 3:
            names += f" and {len(self.sources) - 3} more"
        losses = ", ".join(f"{count:,} {reason.value}" for reason, count in total.dropped.items() if count)
        raise TextError(
            f"{names}: {left} of {total.rows:,} rows left (dropped: {losses or 'none'}), at least 2 needed; "
            "give more text or widen the length limits"
        )
