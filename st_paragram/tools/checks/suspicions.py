"""What in a parallel text looks like a mistake, each in one line, before hours are spent on training with it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from st_paragram.core.text.parallel import TextSource, read_pairs
from st_paragram.errors import ParagramError
from st_paragram.tools.checks.appearance import Side
from st_paragram.tools.checks.frequent_words import language_of
from st_paragram.tools.checks.header import is_header
from st_paragram.tools.checks.sample import Sample, take_sample
from st_paragram.tools.cleaning.languages import short_code
from st_paragram.tools.cleaning.text import normalized_key

logger = logging.getLogger(__name__)

_MOST_COPIES, _FEWEST_ROWS = 0.3, 20


def warn_of_suspicions(sources: Sequence[TextSource]) -> None:
    """Log a warning for each thing in texts that looks like a mistake; a fraction of a second for each text.

    Only regular files are looked at, since pipes cannot be read twice. A text that cannot be read is left to those who
    read all of it, and report it.
    """
    for source in sources:
        if not all(Path(path).is_file() for path in source.paths):
            continue
        try:
            found = suspicions(take_sample(read_pairs(source, drop_invalid=True)), source.pair, source.swapped)
        except ParagramError:
            continue
        for line in found:
            logger.warning("WARNING: %s: %s (--no-checks skips this check)", source.name, line)


def suspicions(sample: Sample, languages: tuple[str, str], exchanged: bool = False) -> list[str]:
    """What looks like a mistake in a sample of a text, in words: a header, equal sides, wrong languages, shifted rows.

    Args:
        sample: Of the text.
        languages: Codes of its sides. Of a language that is not known here, less is checked.
        exchanged: The second column of the file is the first side.
    """
    if not sample.rows:
        return []
    different = [row for row in sample.rows if not _is_copy(row)]
    lines = [*_header(sample, languages), *_identical(len(sample.rows) - len(different), len(sample.rows))]
    sides = Side([first for first, _ in different]), Side([second for _, second in different])
    wrong = list(_languages(sides, languages, exchanged))
    return lines + (wrong or list(_alignment(sample, sides, languages)))


def _header(sample: Sample, languages: tuple[str, str]) -> Iterator[str]:
    first = sample.runs[0][0]
    if is_header(first, languages):
        yield f"the first row looks like a header ({first[0]!r}, {first[1]!r}) and would count as a pair; remove it"


def _identical(copies: int, rows: int) -> Iterator[str]:
    if rows >= _FEWEST_ROWS and copies >= _MOST_COPIES * rows:
        seen = f"{copies / rows:.0%} of the pairs have the same text on both sides"
        yield f"{seen}; was a column copied, or text not translated?"


def _languages(sides: tuple[Side, Side], languages: tuple[str, str], exchanged: bool) -> Iterator[str]:
    names = [_name(code) for code in languages]
    seen = [side.looks_like(code) for side, code in zip(sides, languages, strict=True)]
    if seen[1] and names[0] != names[1] and _swapped(sides, languages, seen[0]):
        found = seen[0] or (names[1] if sides[0].looks_like(languages[1]) is None else "another language")
        wanted = f"{found} where {names[0]} is expected, and {seen[1]} where {names[1]} is expected"
        order = "-".join(languages if exchanged else languages[::-1]) + ":FILE"
        yield f"the columns look swapped: {wanted}; give their order as {order}, or exchange the files"
        return
    for name, code, what in zip(names, languages, seen, strict=True):
        if what:
            yield f"{what} where {name} ({code}) is expected; correct the language, the order of columns or the text"


def _swapped(sides: tuple[Side, Side], languages: tuple[str, str], seen: str | None) -> bool:
    """Whether the second side is in the first language, and the first, which looks like `seen`, is not."""
    first, second = sides
    there = second.is_in(languages[0]) and second.looks_like(languages[0]) is None
    return there and (seen is not None or 2 * first.share(languages[0]) < second.share(languages[0]))


def _alignment(sample: Sample, sides: tuple[Side, Side], languages: tuple[str, str]) -> Iterator[str]:
    from st_paragram.tools.checks.alignment import MODEL_LANGUAGES, Comparison

    known = all(
        short_code(code) in MODEL_LANGUAGES and side.is_in(code) for side, code in zip(sides, languages, strict=True)
    )
    compared = Comparison(sample, "cosine" if known else "length")
    shift, unrelated = compared.shift(), compared.unrelated()
    if shift and (shift.share >= 0.5 or not unrelated):
        ahead, start = f"{abs(shift.rows)} row{'s' * (abs(shift.rows) > 1)}", f"row {shift.first_row:,}"
        where = "later" if shift.rows > 0 else "earlier"
        fits = f"the second text of a row fits the first text of the row {ahead} {where}"
        yield f"rows look shifted from {start} on: {fits} (in {shift.share:.0%} of the sample); is a line missing?"
    elif unrelated:
        yield f"the sides do not look like translations of each other: {compared}; are rows shifted?"


def _is_copy(row: tuple[str, str]) -> bool:
    return normalized_key(row[0]) == normalized_key(row[1]) != ""


def _name(code: str) -> str:
    language = language_of(code)
    return language.name if language else code
