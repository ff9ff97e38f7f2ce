"""F1 of finding translations in comparable texts, as the BUCC 2018 shared task counts it.

Every margin score gives a list of candidate pairs. A threshold on the score decides which are extracted; it is chosen
where F1 is highest on texts with known answers and applied to others. Chosen on the very texts that are scored it is
an oracle's: an upper bound.
"""

from __future__ import annotations

import hashlib
import logging
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.tables import MISSING, hundredths, markdown_table
from st_paragram.core.words import listed
from st_paragram.errors import SettingsError
from st_paragram.tools.bitext_mining.candidates import Candidates, ScoredPairs, candidate_pairs
from st_paragram.tools.bitext_mining.margin import DEFAULT_K, Margin
from st_paragram.tools.bitext_mining.threshold import Extraction, best_threshold, extract
from st_paragram.tools.evaluation.base import Request, inner_folder
from st_paragram.tools.evaluation.bucc_files import ComparableTexts, bucc_pairs, read_bucc, read_bucc_pairs
from st_paragram.tools.evaluation.correlation import embed
from st_paragram.tools.evaluation.models import score_each
from st_paragram.tools.evaluation.published import Source, rows
from st_paragram.tools.neighbors.exact import nearest_both_ways
from st_paragram.tools.neighbors.results import Vectors

logger = logging.getLogger(__name__)

Mined = dict[Margin, ScoredPairs]

#: What the scores are called in tables and records.
LABELS = {Margin.RATIO: "ratio", Margin.DISTANCE: "distance", Margin.ABSOLUTE: "cosine"}

HALF = "half"

# F1, trained on Europarl.
PUBLISHED = rows(Source.SP, "de-en fr-en", "SP 20k, Europarl: 77.0 76.3\nSP 40k, Europarl: 77.5 76.8")

_HEAD = ("model", "score", "threshold", "extracted", "right", "precision", "recall", "F1")

_READING = "Precision, recall and F1 are times 100. Candidate pairs were put forward by the rule *{}*."


@dataclass(frozen=True)
class MarginResult:
    """What was extracted by one score.

    Args:
        threshold: pairs of this score or a higher one were extracted; None if no threshold takes a right pair.
        extracted: their number.
        right: those that are gold pairs.
        precision: share of the extracted pairs that are right.
        recall: share of the gold pairs that were extracted.
        f1: harmonic mean of the two.
    """

    threshold: float | None
    extracted: int
    right: int
    precision: float
    recall: float
    f1: float

    @classmethod
    def of(cls, found: Extraction) -> MarginResult:
        """The figures of an extraction."""
        threshold = found.threshold if math.isfinite(found.threshold) else None
        return cls(threshold, found.extracted, found.right, found.precision, found.recall, found.f1)


@dataclass(frozen=True)
class BuccScores:
    """Pairs found in one pair of texts: the number of gold pairs, and score ("ratio", "cosine") -> figures."""

    gold: int
    margins: dict[str, MarginResult]


@dataclass(frozen=True)
class BuccResult:
    """A model on BUCC: texts and the way thresholds were chosen ("zh-en", "zh-en half") -> scores; seconds of all."""

    languages: dict[str, BuccScores]
    seconds: float | None = None


@dataclass(frozen=True)
class BuccRun:
    """Models on BUCC.

    Args:
        models: name -> result.
        headings: of the keys of the results: texts, and how thresholds were chosen, in words.
        k: neighbors searched for each sentence.
        candidates: which pairs were put forward.
    """

    benchmark: ClassVar[str] = "bucc"
    models: dict[str, BuccResult]
    headings: dict[str, str]
    k: int
    candidates: str


RUN = BuccRun


@dataclass(frozen=True)
class BuccTask:
    """What a model is scored on, and how.

    Args:
        texts: pair of languages ("zh-en") -> texts with known pairs.
        training: texts that choose the thresholds; None: they are chosen on the very texts that are scored, and also
            on one half of their gold, with the other half being scored.
    """

    texts: Mapping[str, ComparableTexts]
    training: ComparableTexts | None = None

    def headings(self) -> dict[str, str]:
        """Key of the results -> the texts, and how thresholds are chosen, in words."""
        found: dict[str, str] = {}
        for pair, texts in self.texts.items():
            if self.training is not None:
                found[pair] = f"{texts.name}: threshold chosen on {self.training.name}"
                continue
            found[pair] = f"{texts.name}: oracle threshold (chosen on the same gold)"
            found[f"{pair} {HALF}"] = f"{texts.name}: threshold chosen on one half of the gold, scored on the other"
        return found


def has_data(data: Path) -> bool:
    """Whether a folder of evaluation data has texts and gold of BUCC."""
    return bool(bucc_pairs(inner_folder(data, "bucc2018")))


def run(request: Request) -> BuccRun:
    """Score models on the texts of a folder, by thresholds chosen on them and on one half, or on a training set.

    Raises:
        SettingsError: there is a training set, and not one pair of languages alone.
        TextError: as `read_bucc_pairs`.
        ModelDirectoryError: a model is not there or cannot be read.
    """
    texts, training = read_bucc_pairs(request.folder, request.pairs), None
    if request.train_gold is not None:
        if len(texts) > 1:
            raise SettingsError(f"--train-gold is of one pair of languages, not of {', '.join(texts)}; give --pair")
        training = read_bucc(request.train_gold.removesuffix(".gold"), next(iter(texts)))
    task = BuccTask(texts, training)
    results = score_each(request.models, lambda model: score_bucc(model, task), request.untrained)
    return BuccRun(results, task.headings(), DEFAULT_K, Candidates.MAX.value)


def score_bucc(model: TextEncoder, task: BuccTask) -> BuccResult:
    """Score a model by every margin; the keys of the result are those of the task's headings.

    Raises:
        EvaluationError, SettingsError: as `nearest_neighbors`.
    """
    started = time.perf_counter()
    learned, training = None, task.training
    if training is not None:
        learned = thresholds(_mine_texts(model, training), training)
    found: dict[str, BuccScores] = {}
    for pair, texts in task.texts.items():
        mined = _mine_texts(model, texts)
        found[pair] = _scores(extractions(mined, texts, learned or thresholds(mined, texts)))
        if training is None:
            found[f"{pair} {HALF}"] = _scores(half_extractions(mined, texts))
    return BuccResult(found, time.perf_counter() - started)


def mine(source: Vectors, target: Vectors, k: int = DEFAULT_K, candidates: Candidates = Candidates.MAX) -> Mined:
    """Candidate pairs by each margin score (`Margin.ABSOLUTE` is the cosine alone).

    Args:
        source: embeddings of n sentences, float32 (n, D), rows of length 1.
        target: embeddings of m sentences, float32 (m, D), rows of length 1.
        k: neighbors searched for each sentence, which also make its background.
        candidates: which pairs are put forward.

    Raises:
        EvaluationError, SettingsError: as `nearest_neighbors`.
    """
    forward, backward = nearest_both_ways(source, target, k)
    return {margin: candidate_pairs(forward, backward, margin, candidates) for margin in Margin}


def thresholds(mined: Mined, texts: ComparableTexts) -> dict[Margin, float]:
    """For each margin score the threshold of the highest F1 against the texts' gold."""
    gold = len(texts.gold)
    return {margin: best_threshold(pairs.scores, in_gold(pairs, texts), gold) for margin, pairs in mined.items()}


def extractions(mined: Mined, texts: ComparableTexts, at: dict[Margin, float]) -> dict[Margin, Extraction]:
    """What the thresholds `at` extract, counted against the texts' gold."""
    gold = len(texts.gold)
    return {margin: extract(pairs.scores, in_gold(pairs, texts), gold, at[margin]) for margin, pairs in mined.items()}


def half_extractions(mined: Mined, texts: ComparableTexts, seed: int = 0) -> dict[Margin, Extraction]:
    """The same with thresholds chosen on one half of the source sentences, counted on the other half.

    Candidates and gold pairs belong to the half of their source sentence, which follows from its id and the seed
    alone (a bit of a hash).
    """
    half = np.array([_bit(key, seed) for key in texts.source_ids])
    gold = half[texts.gold[:, 0]]
    result = {}
    for margin, pairs in mined.items():
        right, side = in_gold(pairs, texts), half[pairs.source]
        threshold = best_threshold(pairs.scores[side == 0], right[side == 0], int((gold == 0).sum()))
        result[margin] = extract(pairs.scores[side == 1], right[side == 1], int((gold == 1).sum()), threshold)
    return result


def in_gold(pairs: ScoredPairs, texts: ComparableTexts) -> NDArray[np.bool_]:
    """Whether each candidate is a gold pair, (c,)."""
    width = len(texts.target_ids)
    found: NDArray[np.bool_] = np.isin(pairs.source * width + pairs.target, texts.gold[:, 0] * width + texts.gold[:, 1])
    return found


def report(found: BuccRun) -> Iterator[str]:
    """A table for each pair of texts and way to choose thresholds, part by part."""
    for key, heading in found.headings.items():
        yield f"## BUCC {heading}\n\n{_READING.format(found.candidates)}\n"
        cells = [
            [name, score, *_cells(figures)]
            for name, result in found.models.items()
            for score, figures in result.languages[key].margins.items()
        ]
        yield markdown_table(_HEAD, cells) + "\n"
    columns = [pair for pair in PUBLISHED[0].scores if pair in found.headings]
    if columns:
        yield f"There are published figures for {listed(columns)}, left out since no digest of those texts is known."


def _mine_texts(model: TextEncoder, texts: ComparableTexts) -> Mined:
    started = time.perf_counter()
    source, target = embed(model, texts.source), embed(model, texts.target)
    embedded = time.perf_counter()
    mined = mine(source, target)
    counts = f"{len(source):,} x {len(target):,} sentences, {len(texts.gold):,} gold pairs"
    times = f"embedding {embedded - started:.1f} s, search and margins {time.perf_counter() - embedded:.1f} s"
    logger.info(f"{texts.name}: {counts}: {times}")
    return mined


def _scores(found: Mapping[Margin, Extraction]) -> BuccScores:
    gold = next(iter(found.values())).gold
    return BuccScores(gold, {LABELS[margin]: MarginResult.of(extraction) for margin, extraction in found.items()})


def _cells(found: MarginResult) -> list[str]:
    threshold = MISSING if found.threshold is None else f"{found.threshold:.4f}"
    shares = map(hundredths, (found.precision, found.recall, found.f1))
    return [threshold, str(found.extracted), str(found.right), *shares]


def _bit(key: str, seed: int) -> int:
    return hashlib.sha256(f"{seed} {key}".encode()).digest()[0] & 1
