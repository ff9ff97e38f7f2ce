"""Score a model on the files of BUCC 2018."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass

from sentence_transformers import SentenceTransformer

from st_paragram.errors import SettingsError
from st_paragram.tools.bitext_mining.candidates import Candidates
from st_paragram.tools.bitext_mining.margin import DEFAULT_K, Margin
from st_paragram.tools.bitext_mining.threshold import Extraction
from st_paragram.tools.evaluation.bucc import LABELS, Mined, extractions, half_extractions, mine, thresholds
from st_paragram.tools.evaluation.bucc_files import ComparableTexts
from st_paragram.tools.evaluation.correlation import embed
from st_paragram.tools.evaluation.results import BuccResult, BuccScores, MarginResult

logger = logging.getLogger(__name__)

HALF = "half"


@dataclass(frozen=True)
class BuccTask:
    """What a model is scored on, and how.

    Args:
        texts: pair of languages ("zh-en") -> texts with known pairs.
        training: choose the thresholds here; None: on the very texts that are scored.
        split: also choose on one half of the gold and score on the other.
        k: neighbours searched for each sentence.
        candidates: which pairs are put forward.
        seed: of the halves.

    Raises:
        SettingsError: there are training texts, and the texts shall be split.
    """

    texts: Mapping[str, ComparableTexts]
    training: ComparableTexts | None = None
    split: bool = False
    k: int = DEFAULT_K
    candidates: Candidates = Candidates.MAX
    seed: int = 0

    def __post_init__(self) -> None:
        if self.training and self.split:
            raise SettingsError("--split chooses thresholds on half of the gold, --train-gold on other texts; drop one")

    def headings(self) -> dict[str, str]:
        """Key of the results -> the texts, and how thresholds are chosen, in words."""
        training, found = self.training, dict[str, str]()
        chosen = f"threshold chosen on {training.name}" if training else "oracle threshold (chosen on the same gold)"
        for pair, texts in self.texts.items():
            found[pair] = f"{texts.name}: {chosen}"
            if self.split:
                found[f"{pair} {HALF}"] = f"{texts.name}: threshold chosen on one half of the gold, scored on the other"
        return found


def score_bucc(model: SentenceTransformer, task: BuccTask) -> BuccResult:
    """Score a model by every margin; the keys of the result are those of the task's headings.

    Raises:
        EvaluationError, SettingsError: as `nearest_neighbours`.
    """
    started = time.perf_counter()
    learned, training = None, task.training
    if training is not None:
        learned = thresholds(_mine_texts(model, training, task), training)
    found: dict[str, BuccScores] = {}
    for pair, texts in task.texts.items():
        mined = _mine_texts(model, texts, task)
        found[pair] = _scores(extractions(mined, texts, learned or thresholds(mined, texts)))
        if task.split:
            found[f"{pair} {HALF}"] = _scores(half_extractions(mined, texts, task.seed))
    return BuccResult(found, time.perf_counter() - started)


def _mine_texts(model: SentenceTransformer, texts: ComparableTexts, task: BuccTask) -> Mined:
    started = time.perf_counter()
    source, target = embed(model, texts.source), embed(model, texts.target)
    embedded = time.perf_counter()
    mined = mine(source, target, task.k, task.candidates)
    counts = f"{len(source):,} x {len(target):,} sentences, {len(texts.gold):,} gold pairs"
    times = f"embedding {embedded - started:.1f} s, search and margins {time.perf_counter() - embedded:.1f} s"
    logger.info(f"{texts.name}: {counts}: {times}")
    return mined


def _scores(found: Mapping[Margin, Extraction]) -> BuccScores:
    gold = next(iter(found.values())).gold
    return BuccScores(gold, {LABELS[margin]: MarginResult.of(extraction) for margin, extraction in found.items()})
