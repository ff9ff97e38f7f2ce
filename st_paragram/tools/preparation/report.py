"""What a preparation read, kept, dropped and repaired, in numbers that add up."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from st_paragram.errors import TextError
from st_paragram.tools.cleaning.base import RowRepair
from st_paragram.tools.cleaning.config import STEPS

NUL, INVALID, COLUMNS = "NUL byte", "not UTF-8", "wrong number of columns"
NOT_TAKEN, REPEATED = "over the cap", "repeated for balance"
#: Fields of `ReadCounts` that count repaired characters, in words.
REPAIRS = {
    "trailing_returns": "lines that ended in a carriage return (removed)",
    "inner_returns": "carriage returns inside lines (made spaces)",
    "line_separators": "other line-ending characters inside lines (made spaces)",
    "byte_order_marks": "byte order marks (removed)",
}


@dataclass
class SourceReport:
    """The numbers of one text, or of all together: `rows` is `kept` plus everything in `dropped`, less `repeated`.

    Attributes:
        name: The file, or "all".
        languages: Of the text, "en-es".
        rows: Rows read.
        kept: Pairs in the store.
        dropped: Rows dropped, by reason. Of equal pairs in several texts the first text's one stays.
        repeated: Copies added to balance languages.
        repairs: Repaired characters, by the names of `REPAIRS`, and rows repaired by steps of the cleaning, by the
            names of the steps.
    """

    name: str
    languages: str = ""
    rows: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    repairs: Counter[str] = field(default_factory=Counter)

    def drop(self, reason: str, count: int) -> None:
        """Count rows that are no longer kept; a reason without any is counted, too: as 0."""
        self.dropped[reason] += count
        self.kept -= count

    def as_json(self) -> dict[str, Any]:
        """Return the numbers as JSON values."""
        return {
            "name": self.name,
            "languages": self.languages,
            "rows": self.rows,
            "kept": self.kept,
            "dropped": dict(self.dropped),
            "repeated": self.repeated,
            "repairs": dict(self.repairs),
        }


@dataclass
class LanguageLengths:
    """Lengths of a language's sentences in a store.

    Attributes:
        sentences: Of either side.
        pieces: Of all of them.
        characters: Of all of them, before they are cut at a number of pieces.
    """

    sentences: int = 0
    pieces: int = 0
    characters: int = 0

    def add(self, sentences: int, pieces: int, characters: int) -> None:
        """Count more of them."""
        self.sentences += sentences
        self.pieces += pieces
        self.characters += characters


@dataclass
class PrepareReport:
    """The numbers of a preparation.

    Attributes:
        sources: One report per text; all have the same reasons in `dropped`, in the order they were looked for.
        vocabulary_size: Pieces in the vocabulary.
        pieces: Pieces stored, for side a and side b.
        lengths: Of sentences, by language. A language with few characters a piece has few pieces in the vocabulary.
        max_pieces: Where sentences were cut.
        cut_sentences: Sentences (of either side) that were cut there.
    """

    sources: list[SourceReport]
    vocabulary_size: int = 0
    pieces: tuple[int, ...] = (0, 0)
    lengths: dict[str, LanguageLengths] = field(default_factory=dict)
    max_pieces: int = 0
    cut_sentences: int = 0

    @property
    def total(self) -> SourceReport:
        """The sum over the texts."""
        total = SourceReport("all")
        for source in self.sources:
            total.rows += source.rows
            total.kept += source.kept
            total.repeated += source.repeated
            for counts, more in ((total.dropped, source.dropped), (total.repairs, source.repairs)):
                for name, count in more.items():  # `+=` would lose what is zero
                    counts[name] += count
        return total

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values, to be stored with the pairs."""
        return {
            "sources": [source.as_json() for source in self.sources],
            "all": self.total.as_json(),
            "vocabulary_size": self.vocabulary_size,
            "pieces": list(self.pieces),
            "lengths": {language: asdict(each) for language, each in self.lengths.items()},
            "max_pieces": self.max_pieces,
            "cut_sentences": self.cut_sentences,
        }

    def table(self) -> str:
        """Render a plain text table, a column per text, and below it what was repaired and cut."""
        columns = [*self.sources, self.total] if len(self.sources) > 1 else self.sources
        names = [str(number) for number in range(1, len(self.sources) + 1)] + ["all"]
        lines = [["", *names[: len(columns)]] if len(columns) > 1 else ["", "rows"]]
        lines += [["read", *(f"{each.rows:,}" for each in columns)]]
        lines += [
            [f"- {reason}", *(f"{each.dropped[reason]:,}" for each in columns)]
            for reason, count in self.total.dropped.items()
            if count
        ]
        if self.total.repeated:
            lines += [[f"+ {REPEATED}", *(f"{each.repeated:,}" for each in columns)]]
        lines += [["stored", *(f"{each.kept:,}" for each in columns)]]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rendered = [
            "  ".join([label.ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(cells, widths[1:], strict=True))])
            for label, *cells in lines
        ]
        texts = [f"{number}: {each.name}" for number, each in enumerate(self.sources, 1)]
        return "\n".join([*rendered, *texts, *self._notes()])

    def _notes(self) -> list[str]:
        total = self.total
        notes = [f"{count:,} {_repair_note(name)}" for name, count in total.repairs.items() if count]
        if self.cut_sentences:
            notes.append(f"{self.cut_sentences:,} of {2 * total.kept:,} sentences cut at {self.max_pieces} pieces")
        if self.vocabulary_size:
            notes.append(f"{self.vocabulary_size:,} pieces in the vocabulary")
        for language, each in self.lengths.items():
            characters = f", {each.characters / each.pieces:.2f} characters per piece" if each.pieces else ""
            notes.append(f"{language}: {each.pieces / each.sentences:.1f} pieces per sentence{characters}")
        return notes

    def check_enough(self) -> None:
        """Refuse a preparation that leaves fewer than two pairs.

        Raises:
            TextError: With the names of the texts and where their rows went.
        """
        total = self.total
        if total.kept >= 2:
            return
        names = ", ".join(source.name for source in self.sources[:3])
        if len(self.sources) > 3:
            names += f" and {len(self.sources) - 3} more"
        losses = ", ".join(f"{count:,} {reason}" for reason, count in total.dropped.items() if count)
        raise TextError(
            f"{names}: {total.kept} of {total.rows:,} rows left (dropped: {losses or 'none'}), at least 2 needed; "
            "give more text or widen the filters"
        )


def _repair_note(name: str) -> str:
    """What was repaired, in words."""
    if name in REPAIRS:
        return REPAIRS[name]
    step = STEPS[name]
    assert issubclass(step, RowRepair)
    return step.note
