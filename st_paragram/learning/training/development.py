"""Graded pairs and translations to watch a training run with, and the evaluator that does so."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
from sentence_transformers.sentence_transformer.evaluation import (
    EmbeddingSimilarityEvaluator,
    SentenceEvaluator,
    SequentialEvaluator,
    TranslationEvaluator,
)

from st_paragram.core.pair_store import PairStore
from st_paragram.core.sample import LANGUAGES, graded_pairs
from st_paragram.core.text.parallel import TextSource
from st_paragram.errors import EvaluationError
from st_paragram.tools.evaluation.files import GradedPairs, Translations, read_graded_pairs, read_translations

logger = logging.getLogger(__name__)

HELD_OUT = 1_000
MOST_TRANSLATIONS = 10_000  # the evaluator holds all cosines at once: 400 MB


def development_evaluator(
    pairs: GradedPairs, translations: Translations | None = None, at_once: int = 128
) -> SentenceEvaluator:
    """sentence-transformers' evaluator for development data; its main figure is Spearman's correlation of cosines.

    With translations, `TranslationEvaluator` also reports how many are found by nearest neighbor. `at_once` texts are
    encoded in one forward pass.
    """
    same: dict[str, Any] = {"batch_size": at_once, "write_csv": False}
    graded = EmbeddingSimilarityEvaluator(
        pairs.first, pairs.second, pairs.grades, main_similarity="cosine", name=pairs.name, **same
    )
    if translations is None:
        return graded
    found = TranslationEvaluator(translations.first, translations.second, name=translations.name, **same)
    return SequentialEvaluator([graded, found], main_score_function=lambda scores: scores[0])


def built_in_pairs(language: str) -> GradedPairs:
    """The built-in graded pairs, sentence1 in English and sentence2 in `language`: a check, no benchmark."""
    return GradedPairs(f"built-in-en-{language}", *graded_pairs("en", language))


def development_pairs(path: str | Path | None, language: str, force: bool = False) -> GradedPairs:
    """Pairs to watch a training run with: a file's (e.g. STS 2017 en-en), or built-in ones of English and `language`.

    For a language without built-in sentences the built-in English pairs serve. A known test set is refused, or, with
    `force`, warned of.
    """
    if path is None:
        return built_in_pairs(language if language in LANGUAGES else "en")
    pairs = read_graded_pairs(path)
    _refuse_test_set(path, pairs, "--dev with STS 2017 en-en or STS Benchmark dev", force)
    return pairs


def development_translations(path: str | Path, language: str, force: bool = False) -> Translations:
    """Translations to watch a training run with: rows `english TAB other` that are not trained on; `force` as above."""
    translations = read_translations(TextSource((str(path),), ("en", language)), Path(path).name.split(".")[0])
    if (count := len(translations)) > MOST_TRANSLATIONS:
        raise EvaluationError(f"{path}: {count} translations; use at most {MOST_TRANSLATIONS}; 1,000 are enough")
    _refuse_test_set(path, translations, "--dev-bitext with translations held out of the training data", force)
    return translations


def hold_out(store: PairStore) -> tuple[PairStore, Translations | None]:
    """A store without its last pairs, and these as translations: at most 1,000, and none of fewer than 1,000 pairs."""
    count = min(len(store) // 20, HELD_OUT)
    if len(store) < HELD_OUT:
        return store, None
    rows = np.arange(len(store) - count, len(store))
    first, second = (list(store.texts(side, rows)) for side in "ab")
    return PairStore(store.path, len(store) - count), Translations("held-out", first, second)


def _refuse_test_set(path: str | Path, data: GradedPairs | Translations, remedy: str, force: bool) -> None:
    from st_paragram.tools.evaluation.known_test_sets import known_test_set_in

    if (match := known_test_set_in(data.first, data.second)) is None:
        return
    seen = f"{path}: holds about {match.share:.0%} of the {match.pairs:,} pairs of {match.name}, a test set"
    reason = "scores watched in training choose the model, so they no longer measure it"
    if not force:
        raise EvaluationError(f"{seen}; {reason}; give {remedy}, or --force-test-set to use it anyway")
    logger.warning(f"{seen}; {reason}; used anyway, as forced: do not report this model's score on it")
