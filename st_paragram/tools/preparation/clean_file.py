"""Clean a file of pairs, in the order of its rows, into a file of pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import nsmallest
from itertools import islice
from typing import IO

from tqdm import tqdm

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.text.parallel import ReadCounts, TextSource, read_rows
from st_paragram.core.text.streams import unpacked_suffix
from st_paragram.core.text.translation_files import TmxEditor, pair_writer
from st_paragram.errors import SettingsError
from st_paragram.tools.cleaning.base import Row
from st_paragram.tools.cleaning.config import Cleaning, Key
from st_paragram.tools.preparation.clean import BLOCK_ROWS, Block, clean_rows, source_report
from st_paragram.tools.preparation.order import REASONS
from st_paragram.tools.preparation.report import PrepareReport
from st_paragram.tools.score_files import score_pairs

_LOW_SCORE = "score too low"


@dataclass
class Scoring:
    """How the pairs are scored: rows with a cosine below `min_score` are dropped.

    The `count` kept rows with the lowest cosines are collected in `lowest`: cosine, number in the
    file, row.
    """

    model: TextEncoder
    min_score: float = 0.2
    count: int = 0
    lowest: list[tuple[float, int, Row]] = field(default_factory=list)


def clean_file(
    source: TextSource,
    output: IO[bytes],
    cleaning: Cleaning,
    *,
    as_tmx: bool = False,
    rejects: IO[bytes] | None = None,
    scoring: Scoring | None = None,
    drop_invalid: bool = False,
) -> PrepareReport:
    """Write the good rows of a file in their order; only repaired texts are changed.

    Args:
        source: The pairs.
        output: Binary file for the rows. TMX from a source in TMX keeps its header and all other
            contents of the units.
        cleaning: Filters and repairs, and which repeated rows to drop; the first row is kept.
        as_tmx: Write TMX instead of tab-separated rows in the column order of the source.
        rejects: Binary file for dropped rows: `row TAB reason TAB first TAB second`.
        scoring: Scores the rows that the filters have kept.
        drop_invalid: Drop rows that are not UTF-8 or have a wrong number of columns.

    Returns:
        The counts of rows read, repaired, dropped and kept.
    """
    if cleaning.duplicates.on and cleaning.duplicates.copies == "none":
        raise SettingsError(
            "duplicates: copies is none, which a file read once does not allow; use copies: one"
        )
    steps = cleaning.make_steps(source.pair)
    seen: dict[Key, set[bytes]] = {key: set() for key in cleaning.duplicates.on}
    read_counts = ReadCounts()
    counts = Counter[str]()
    with ExitStack() as stack:
        editor = None
        if as_tmx and unpacked_suffix(source.paths[0]) == ".tmx":
            editor = stack.enter_context(closing(TmxEditor(source.paths[0], source.pair, output)))
        elif as_tmx:
            writer = stack.enter_context(pair_writer(output, source.pair))
        rows = read_rows(source, read_counts, drop_invalid)
        bar = tqdm(rows, desc="clean", unit=" rows", unit_scale=True, disable=None, leave=False)
        numbered = ((read_counts.rows, row) for row in bar)
        while items := list(islice(numbered, BLOCK_ROWS)):
            numbers = [number for number, _ in items]
            before = [row for _, row in items]
            block = Block(source, 0, first=numbers[0], rows=before)
            after, reasons, repaired = clean_rows(block, steps)
            counts.update(repaired)
            for place, row in enumerate(after):
                if reasons[place] is None:
                    reasons[place] = _repeated(row, seen)
            if scoring is not None:
                _score(scoring, numbers, after, reasons)
            counts.update(filter(None, reasons))
            for number, row, cleaned, reason in zip(numbers, before, after, reasons, strict=True):
                changes = _changes(row, cleaned)
                if editor is not None:
                    editor.next(None if reason else (changes[0], changes[1]))
                elif reason is None and as_tmx:
                    writer.write(cleaned[0], cleaned[1])
                elif reason is None:
                    texts = [new or old for old, new in zip(row, changes, strict=True)]
                    output.write(_line(texts, source))
                if reason is not None and rejects is not None:
                    rejects.write(f"{number}\t{reason}\t".encode() + _line(row, source))
    counts.update(vars(read_counts))
    report = source_report(source, steps, counts, drop_invalid=drop_invalid)
    for key in cleaning.duplicates.on:
        report.drop(REASONS[key], counts[REASONS[key]])
    if scoring is not None:
        report.drop(_LOW_SCORE, counts[_LOW_SCORE])
    return PrepareReport([report])


def _changes(before: Row, after: Row) -> list[str | None]:
    """Return the texts that a repair has changed, and None for others."""
    changes: list[str | None] = []
    for old, new in zip(before, after, strict=True):
        changes.append(None if new == " ".join(old.split()) else new)
    return changes


def _repeated(row: Row, seen: dict[Key, set[bytes]]) -> str | None:
    """Return the reason to drop a row that is equal to an earlier row; remember it otherwise."""
    for key, digests in seen.items():
        texts = {"pair": row[:2], "first": row[:1], "second": row[1:2]}[key]
        digest = blake2b("\t".join(texts).encode("utf-8", "replace"), digest_size=12).digest()
        if digest in digests:
            return REASONS[key]
        digests.add(digest)
    return None


def _score(
    scoring: Scoring, numbers: Sequence[int], rows: Sequence[Row], reasons: list[str | None]
) -> None:
    """Score the kept rows, and set the reason of those with a low score."""
    places = [place for place, reason in enumerate(reasons) if reason is None]
    pairs = [(rows[place][0], rows[place][1]) for place in places]
    kept = []
    for place, (score, _, _) in zip(places, score_pairs(scoring.model, pairs), strict=True):
        if score < scoring.min_score:
            reasons[place] = _LOW_SCORE
        else:
            kept.append((score, numbers[place], rows[place]))
    scoring.lowest = nsmallest(scoring.count, [*scoring.lowest, *kept])


def _line(row: Sequence[str], source: TextSource) -> bytes:
    """Return a row in the column order of the source."""
    columns = [row[1], row[0], *row[2:]] if source.swapped else row
    return ("\t".join(columns) + "\n").encode("utf-8", "replace")
