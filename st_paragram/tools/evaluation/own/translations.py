"""Translations of the user's: is each found among all, and can they be mined from among sentences without a partner?

Retrieval: the nearest neighbor by cosine, in both directions. Texts that differ only in case, in spaces or in their
Unicode form are one text, and each of a text's translations in the file is right.

Mining: of the pairs whose two texts have no other partner, a third keep both sides, a third only the first and a third
only the second, so that half of the sentences on either side have no partner; given distractors, all pairs stay whole.
Pairs are mined as by `mine` (margin, one to one). The sentences of the first side are cut in two halves: the threshold
of each half is where F1 on the other half is highest, and F1 is counted over both. What is drawn follows from the texts
alone (hashes), not from their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import ClassVar
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.text.parallel import ReadCounts, TextSource, read_pairs
from st_paragram.core.text.streams import read_lines
from st_paragram.core.words import counted
from st_paragram.errors import TextError
from st_paragram.tools.bitext_mining.candidates import candidate_pairs
from st_paragram.tools.bitext_mining.margin import DEFAULT_K
from st_paragram.tools.bitext_mining.threshold import best_threshold
from st_paragram.tools.evaluation.base import Request
from st_paragram.tools.evaluation.bootstrap import RESAMPLES
from st_paragram.tools.evaluation.models import score_each
from st_paragram.tools.evaluation.own.resampling import resampled_sums
from st_paragram.tools.evaluation.own.results import SEED, OwnRun, Sample, report_of, results_of
from st_paragram.tools.evaluation.own.vectors import chosen, embedded, nearest_of_each
from st_paragram.tools.neighbors.results import Vectors

FORWARD, BACKWARD, BOTH, ERROR = "accuracy to second", "accuracy to first", "accuracy", "error rate"
PRECISION, RECALL, F1 = "mining precision", "mining recall", "mining F1"
FEWEST_MINED = 30  # pairs; below, a threshold chosen on half of what is left means nothing

Rows = NDArray[np.int64]
Counts = NDArray[np.float64]


@dataclass(frozen=True)
class OwnTranslationRun(OwnRun):
    """Models on translations."""

    benchmark: ClassVar[str] = "own-translations"


RUN = OwnTranslationRun


@dataclass(frozen=True)
class Mining:
    """Sentences to mine: which rows of each side, of each first one its partner's place or -1, and its half."""

    first: Rows
    second: Rows
    partner: Rows
    half: Rows


@dataclass(frozen=True)
class OwnTranslations:
    """A file of translations.

    Args:
        name: of the file.
        first: different texts, and after them distractors.
        second: the same of the other side.
        pairs: different pairs, rows of the two sides, int64 (n, 2), in the order of the file.
        sizes: how many of the first and second texts are not distractors.
        mining: what is mined; None where there are too few pairs.
        notes: what is odd.
    """

    name: str
    first: list[str]
    second: list[str]
    pairs: Rows
    sizes: tuple[int, int]
    mining: Mining | None
    notes: tuple[str, ...]


class _Side:
    """Different texts of a side, each with a row and a hash."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.rows: dict[int, int] = {}

    def row(self, text: str) -> int:
        """The row of a text, which is added if it is new."""
        key = " ".join(normalize("NFC", text).casefold().split())
        known = int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big")
        row = self.rows.setdefault(known, len(self.texts))
        if row == len(self.texts):
            self.texts.append(text)
        return row

    def hashes(self) -> NDArray[np.uint64]:
        """Of the texts, by row."""
        return np.fromiter(self.rows, np.uint64, len(self.rows))


def read_own_translations(
    path: str | Path, distractors: Sequence[str | Path] = (), columns: Sequence[str] = ()
) -> OwnTranslations:
    """Read rows `text TAB translation`, plain or compressed, or two columns of a table.

    Args:
        path: of the file.
        distractors: two files of sentences without a partner, one per line, of the first and of the second side.
        columns: the names of the two columns of a table.

    Raises:
        TextError: a file cannot be read, a text is empty, or there are fewer than two different pairs or texts of a
            side; the message names file and row.
    """
    name, sides, counts = str(path), (_Side(), _Side()), ReadCounts()
    read = (
        side.row(text) for pair in _filled_pairs(name, columns, counts) for side, text in zip(sides, pair, strict=True)
    )
    rows = np.fromiter(read, np.int64).reshape(-1, 2)
    _, places = np.unique(rows, axis=0, return_index=True)
    pairs, sizes = rows[np.sort(places)], (len(sides[0].texts), len(sides[1].texts))
    if min(len(pairs), *sizes) < 2:
        seen = f"{counted(len(pairs), 'different pair')} of {sizes[0]} and {sizes[1]} different texts"
        raise TextError(f"{name}: {seen}; give at least two of each")
    notes = [f"{name}: {counted(counts.nul_rows, 'row')} with a NUL byte left out"] if counts.nul_rows else []
    if len(pairs) < len(rows):
        notes.append(f"{name}: {len(rows) - len(pairs):,} of {len(rows):,} pairs occur again and count once")
    for side, file in zip(sides, distractors, strict=False):
        for line in filter(str.strip, read_lines(str(file))):
            side.row(line)
    mining = _mining(pairs, sides, sizes, bool(distractors))
    if mining is None:
        notes.append(f"{name}: no mining, for which {FEWEST_MINED} pairs of texts with one partner each are needed")
    return OwnTranslations(name, sides[0].texts, sides[1].texts, pairs, sizes, mining, tuple(notes))


def run(request: Request) -> OwnTranslationRun:
    """Score models on the user's translations; errors as of `read_own_translations` and `score_each`."""
    files = [
        read_own_translations(path, request.distractors, request.columns) for path in dict.fromkeys(request.own_pairs)
    ]
    found = score_each(
        request.models, lambda model: [score_translations(model, file) for file in files], request.untrained
    )
    samples = {
        file.name: _samples({model: scores[number] for model, scores in found.items()})
        for number, file in enumerate(files)
    }
    return OwnTranslationRun(
        results_of(samples, (BOTH, F1)),
        {file.name: f"{len(file.pairs):,} pairs" for file in files},
        tuple(note for file in files for note in file.notes),
        {file.name: RESAMPLES for file in files},
    )


def score_translations(model: TextEncoder, file: OwnTranslations) -> tuple[Counts, Counts | None]:
    """What each pair and each mined sentence counts.

    Returns:
        (n, 2): whether a translation of the first text was found, and of the second one; and of the sentences mined
        (s, 3): right pairs, extracted pairs, pairs to be found.

    Raises:
        EvaluationError: as `embedded`.
    """
    first, second = embedded(model, file.first, file.name), embedded(model, file.second, file.name)
    sizes = file.sizes
    ahead, back = nearest_of_each(first[: sizes[0]], second[: sizes[1]], 1, file.name)
    known = file.pairs[:, 0] * sizes[1] + file.pairs[:, 1]
    found = file.pairs[:, 0] * sizes[1] + ahead.indices[file.pairs[:, 0], 0]
    other = back.indices[file.pairs[:, 1], 0] * sizes[1] + file.pairs[:, 1]
    retrieved = np.stack([np.isin(found, known), np.isin(other, known)], axis=1).astype(np.float64)
    return retrieved, None if file.mining is None else _mined(first, second, file.mining, file.name)


def report(found: OwnTranslationRun) -> Iterator[str]:
    """Tables, part by part."""
    yield from report_of(
        found,
        "Your translations: found by the nearest neighbor (cosine), and mined among sentences without a partner",
        "Mining is by margin as in `st-paragram mine`. The threshold for each half of the sentences is the best one on "
        "the other half.",
    )


def _filled_pairs(name: str, columns: Sequence[str], counts: ReadCounts) -> Iterator[tuple[str, str]]:
    source = TextSource((name,), ("first", "second"), columns=tuple(columns))
    for number, pair in enumerate(read_pairs(source, counts), 1):
        if not all(text.strip() for text in pair):
            raise TextError(f"{name}: row {number}: an empty text; complete the row or take it out")
        yield pair


def _mining(pairs: Rows, sides: tuple[_Side, _Side], sizes: tuple[int, int], whole: bool) -> Mining | None:
    """Choose what is mined among the pairs whose texts have one partner each, and distractors."""
    single = np.all([np.bincount(pairs[:, side])[pairs[:, side]] == 1 for side in (0, 1)], axis=0)
    hashes = [side.hashes() for side in sides]
    pairs = pairs[single]
    if len(pairs) < FEWEST_MINED:
        return None
    order = np.lexsort((hashes[1][pairs[:, 1]], hashes[0][pairs[:, 0]]))
    third = np.empty(len(pairs), np.int64)
    third[order] = 0 if whole else np.arange(len(pairs)) % 3
    kept = [
        np.concatenate([pairs[third != 2 - side, side], np.arange(sizes[side], len(sides[side].texts))])
        for side in (0, 1)
    ]
    places = np.full(len(sides[1].texts), -1)
    places[kept[1]] = np.arange(len(kept[1]))
    partner = np.full(len(sides[0].texts), -1)
    partner[pairs[third == 0, 0]] = places[pairs[third == 0, 1]]
    paired = partner[kept[0]]
    half = np.empty(len(kept[0]), np.int64)  # each half gets as many of the sentences with a partner
    half[np.lexsort((hashes[0][kept[0]], paired >= 0))] = np.arange(len(half)) % 2
    return Mining(kept[0], kept[1], paired, half)


def _mined(first: Vectors, second: Vectors, mining: Mining, name: str) -> Counts:
    ahead, back = nearest_of_each(chosen(first, mining.first), chosen(second, mining.second), DEFAULT_K, name)
    pairs = candidate_pairs(ahead, back)
    right, half = mining.partner[pairs.source] == pairs.target, mining.half[pairs.source]
    there = mining.partner >= 0
    counts = np.zeros((len(mining.first), 3))
    counts[:, 2] = there
    for own in (0, 1):
        others = half != own
        gold = int((there & (mining.half != own)).sum())
        threshold = best_threshold(pairs.scores[others], right[others], gold)
        taken = ~others & (pairs.scores >= threshold)
        counts[pairs.source[taken], 1] = 1
        counts[pairs.source[taken & right], 0] = 1
    return counts


def _samples(scores: dict[str, tuple[Counts, Counts | None]]) -> dict[str, dict[str, Sample]]:
    """Figures of all models, on resamples of the pairs, or of the sentences mined, that are the same for all."""
    made = {model: _shares(retrieved) for model, retrieved in _summed({key: of[0] for key, of in scores.items()})}
    if all(mined is not None for _, mined in scores.values()):
        mined = {key: of for key, (_, of) in scores.items() if of is not None}
        for model, sums in _summed(mined):
            made[model] |= _extraction(sums)
    return made


def _summed(items: dict[str, Counts]) -> Iterable[tuple[str, Counts]]:
    """Of each model the sums of what its items count, first over all items, then over each resample."""
    joined = np.concatenate(list(items.values()), axis=1)
    sums = np.concatenate([joined.sum(axis=0, keepdims=True), resampled_sums(joined, RESAMPLES, SEED)])
    scale = np.full((len(sums), 1), len(joined))
    parts = np.split(sums, len(items), axis=1)
    return [(model, np.concatenate([part, scale], axis=1)) for model, part in zip(items, parts, strict=True)]


def _shares(sums: Counts) -> dict[str, Sample]:
    ahead, back = sums[:, 0] / sums[:, 2], sums[:, 1] / sums[:, 2]
    mean = (ahead + back) / 2
    return {
        name: Sample(float(v[0]), v[1:])
        for name, v in ((FORWARD, ahead), (BACKWARD, back), (BOTH, mean), (ERROR, 1 - mean))
    }


def _extraction(sums: Counts) -> dict[str, Sample]:
    right, extracted, gold = sums[:, 0], sums[:, 1], sums[:, 2]
    shares = (
        (PRECISION, right / np.maximum(extracted, 1)),
        (RECALL, right / np.maximum(gold, 1)),
        (F1, 2 * right / np.maximum(extracted + gold, 1)),
    )
    return {name: Sample(float(values[0]), values[1:]) for name, values in shares}
