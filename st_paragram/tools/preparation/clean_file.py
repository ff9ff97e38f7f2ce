"""Clean a file of pairs, in the order of its rows, into a file of pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from heapq import nsmallest
from itertools import islice
from typing import IO

from tqdm import tqdm

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.text.parallel import ReadCounts, TextSource, read_rows
from st_paragram.core.text.translation_files import PairWriter, pair_writer
from st_paragram.errors import SettingsError
from st_paragram.tools.cleaning.base import Row
from st_paragram.tools.cleaning.config import Cleaning, Key
from st_paragram.tools.preparation.clean import BLOCK_ROWS, Block, clean_rows, source_report
from st_paragram.tools.preparation.order import REASONS
from st_paragram.tools.preparation.report import PrepareReport
from st_paragram.tools.preparation.settings import Scoring
from st_paragram.tools.score_files import score_pairs

_LOW_SCORE = "score too low"


def clean_file(
    source: TextSource,
    output: IO[bytes],
    cleaning: Cleaning,
    *,
    as_tmx: bool = False,
    rejects: IO[bytes] | None = None,
    model: TextEncoder | None = None,
    scoring: Scoring | None = None,
    lowest: IO[bytes] | None = None,
    drop_invalid: bool = False,
) -> PrepareReport:
    """Write the good rows of a file in their order; only repaired texts are changed.

    Args:
        source: The pairs.
        output: Binary file for the rows in the column order of the source.
        cleaning: Filters and repairs, and which repeated rows to drop; the first row is kept.
        as_tmx: Write TMX instead of tab-separated rows. TMX from a source in TMX keeps its header
            and all other contents of the units.
        rejects: Binary file for dropped rows: `row TAB reason TAB first TAB second`.
        model: Scores the rows that the filters have kept.
        scoring: Limits of the scores.
        lowest: Binary file for the kept rows with the lowest scores, lowest first:
            `score TAB row TAB first TAB second`.
        drop_invalid: Drop rows that are not UTF-8 or have a wrong number of columns.

    Returns:
        The counts of rows read, repaired, dropped and kept.
    """
    if cleaning.duplicates.on and cleaning.duplicates.copies == "none":
        raise SettingsError(
            "duplicates: copies is none, which a file read once does not allow; use copies: one"
        )
    scoring = scoring or Scoring()
    steps = cleaning.make_steps(source.pair)
    seen: dict[Key, set[bytes]] = {key: set() for key in cleaning.duplicates.on}
    read_counts = ReadCounts()
    counts = Counter[str]()
    scored: list[tuple[float, int, Row]] = []
    languages = source.languages if as_tmx else None
    with pair_writer(output, languages, source.paths[0]) as writer:
        rows = read_rows(source, read_counts, drop_invalid)
        bar = tqdm(rows, desc="clean", unit=" rows", unit_scale=True, disable=None, leave=False)
        numbered = ((read_counts.rows, row) for row in bar)
        while items := list(islice(numbered, BLOCK_ROWS)):
            block = Block(source, 0, first=items[0][0], rows=[row for _, row in items])
            after, reasons, repaired = clean_rows(block, steps)
            counts.update(repaired)
            _drop_repeated(after, reasons, seen)
            if model is not None:
                kept = [place for place, reason in enumerate(reasons) if reason is None]
                pairs = [(after[place][0], after[place][1]) for place in kept]
                for place, (score, _, _) in zip(kept, score_pairs(model, pairs), strict=True):
                    if score < scoring.min_score:
                        reasons[place] = _LOW_SCORE
                    else:
                        scored.append((score, items[place][0], after[place]))
                scored = nsmallest(scoring.count, scored)
            counts.update(filter(None, reasons))
            for (number, row), cleaned, reason in zip(items, after, reasons, strict=True):
                if reason is None:
                    writer.write(*_columns(_repaired(row, cleaned), source))
                    continue
                writer.skip()
                if rejects is not None:
                    PairWriter(rejects).write(str(number), reason, *_columns(row, source))
    if lowest is not None:
        for score, number, row in scored:
            PairWriter(lowest).write(str(number), row[0], row[1], score=score)
    counts.update(vars(read_counts))
    report = source_report(source, steps, counts, drop_invalid=drop_invalid)
    for reason in (*[REASONS[key] for key in seen], _LOW_SCORE):
        report.drop(reason, counts[reason])
    return PrepareReport([report])


def _drop_repeated(
    rows: Sequence[Row], reasons: list[str | None], seen: dict[Key, set[bytes]]
) -> None:
    """Set the reasons of rows that are equal to earlier rows."""
    for place, row in enumerate(rows):
        for key, digests in seen.items():
            if reasons[place] is not None:
                break
            texts = {"pair": row[:2], "first": row[:1], "second": row[1:2]}[key]
            text = "\t".join(texts).encode("utf-8", "replace")
            digest = blake2b(text, digest_size=12).digest()
            if digest in digests:
                reasons[place] = REASONS[key]
            digests.add(digest)


def _repaired(before: Row, after: Row) -> Row:
    """Return a cleaned row, with the texts as they were read if only their spaces differ."""
    texts = list(after)
    for place, text in enumerate(before):
        if " ".join(text.split()) == after[place]:
            texts[place] = text
    return tuple(texts)


def _columns(row: Row, source: TextSource) -> Row:
    """Return a row in the column order of the source."""
    return (row[1], row[0], *row[2:]) if source.swapped else row
