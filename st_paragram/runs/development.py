"""Graded pairs and translations to evaluate during training, and their evaluator."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.evaluation import (
    EmbeddingSimilarityEvaluator,
    SentenceEvaluator,
    SequentialEvaluator,
    TranslationEvaluator,
)
from sentence_transformers.util import cos_sim

from st_paragram.core.arrays import Floats
from st_paragram.core.encoding.models import batch_size
from st_paragram.core.encoding.unit_embeddings import known_texts
from st_paragram.core.formatting import counted
from st_paragram.core.languages import both_sides
from st_paragram.core.model_directory.record import Correlation, Score, TranslationScore
from st_paragram.core.pair_store import PairStore
from st_paragram.core.sample import LANGUAGES, graded_pairs
from st_paragram.core.text.parallel import TextSource
from st_paragram.errors import EvaluationError
from st_paragram.tools.evaluation.files import (
    GradedPairs,
    Translations,
    read_graded_pairs,
    read_translations,
)

logger = logging.getLogger(__name__)
Pairs = TypeVar("Pairs", GradedPairs, Translations)

HELD_OUT = 1_000
MOST_TRANSLATIONS = 10_000  # the evaluator keeps all cosines in memory: 400 MB


class Development:
    """The development data of a training run, and the scores of the model before and after it.

    Pairs with a side in which the model knows no token are left out.

    Attributes:
        evaluator: An evaluator of sentence-transformers, for the trainer.
        scores: Correlations with the graded pairs, one per call of `measure`.
        translations_found: Shares of the translations found, if there are translations.
        hits: The result of each translation, as in `TranslationHits`.

    Examples:
        >>> from st_paragram import Development, development_pairs, load
        >>> development = Development(load("p-sp-es", device="cpu"), development_pairs(None, "es"))
        >>> development.measure("before training")
        >>> development.scores[0].data
        'built-in-en-es'
    """

    def __init__(
        self,
        model: SentenceTransformer,
        pairs: GradedPairs,
        translations: Translations | None = None,
    ) -> None:
        """Evaluate `model` on graded pairs and, if given, on held-out translations."""
        self.model = model
        self.pairs: GradedPairs = with_known_tokens(pairs, model)
        self.translations: Translations | None = (
            with_known_tokens(translations, model) if translations else None
        )
        self.evaluator: SentenceEvaluator = development_evaluator(
            self.pairs, self.translations, batch_size(model)
        )
        self.scores: list[Score] = []
        self.translations_found: list[TranslationScore] = []
        self.hits: list[Floats] = []

    def measure(self, when: str) -> None:
        """Append the scores of the model as it is now; `when` is their name in the model card."""
        values: Any = self.evaluator(self.model)
        name = self.pairs.name
        pearson = float(values[f"{name}_pearson_cosine"])
        spearman = float(values[f"{name}_spearman_cosine"])
        correlation = Correlation(pearson, spearman)
        self.scores.append(Score(name, len(self.pairs), when, correlation))
        if self.translations:
            name = self.translations.name
            accuracy = float(values[f"{name}_mean_accuracy"])
            score = TranslationScore(name, len(self.translations), when, accuracy)
            self.translations_found.append(score)
            self.hits.append(hits_of(self.evaluator))

    @property
    def loss_of_translations(self) -> str:
        """What training made worse, in words; empty if it did not."""
        if not self.translations or not is_worse(*self.hits):
            return ""
        before, after = self.translations_found
        shares = f"{100 * before.accuracy:.1f} % to {100 * after.accuracy:.1f} %"
        return f"translations found fell from {shares}"


def development_evaluator(
    pairs: GradedPairs, translations: Translations | None = None, at_once: int = 128
) -> SentenceEvaluator:
    """Make sentence-transformers' evaluator for development data.

    Its main score is Spearman's correlation of cosines. With translations, `TranslationHits` also
    reports the share found by nearest neighbor. `at_once` is the number of texts encoded in one
    forward pass.
    """
    graded = EmbeddingSimilarityEvaluator(
        pairs.first,
        pairs.second,
        pairs.grades,
        main_similarity="cosine",
        name=pairs.name,
        batch_size=at_once,
        write_csv=False,
    )
    if translations is None:
        return graded
    hits = TranslationHits(
        translations.first,
        translations.second,
        name=translations.name,
        batch_size=at_once,
        write_csv=False,
    )
    return SequentialEvaluator([graded, hits], main_score_function=lambda scores: scores[0])


class TranslationHits(TranslationEvaluator):
    """`TranslationEvaluator`, which also keeps the result of each pair.

    Attributes:
        hits: For each pair, the share of its two directions in which the nearest text is the
            translation: 0, 0.5 or 1.
    """

    hits: Floats

    def __call__(
        self,
        model: Any,
        output_path: str | None = None,
        epoch: int = -1,
        steps: int = -1,
    ) -> dict[str, float]:
        """Return the shares of the translations found: in each direction, and their mean."""
        first = np.array(self.source_sentences, dtype=object)
        second = np.array(self.target_sentences, dtype=object)
        first_vectors = torch.stack(self.embed_inputs(model, self.source_sentences))
        second_vectors = torch.stack(self.embed_inputs(model, self.target_sentences))
        cosines = cos_sim(first_vectors, second_vectors).cpu().numpy()
        to_second = (second[cosines.argmax(axis=1)] == second).astype(np.float64)
        to_first = (first[cosines.argmax(axis=0)] == first).astype(np.float64)
        self.hits = (to_second + to_first) / 2
        ahead = float(to_second.mean())
        back = float(to_first.mean())
        values = {
            "src2trg_accuracy": ahead,
            "trg2src_accuracy": back,
            "mean_accuracy": (ahead + back) / 2,
        }
        values = self.prefix_name_to_metrics(values, self.name)
        self.store_metrics_in_model_card_data(model, values, epoch, steps)
        return values


def hits_of(evaluator: SentenceEvaluator) -> Floats:
    """Return the results of the pairs in the last call of a development evaluator with
    translations.
    """
    parts: Any = evaluator
    translations = next(part for part in parts.evaluators if isinstance(part, TranslationHits))
    return translations.hits


def is_worse(before: Floats, after: Floats) -> bool:
    """Whether fewer translations are found after training, beyond the 95% confidence interval of
    the difference.

    `before` and `after` are the hits of the same n pairs, so that the differences d of the pairs
    are compared with 0. The interval is the normal approximation with the continuity correction for
    paired shares (Fleiss, Statistical Methods for Rates and Proportions, chapter 13): mean(d) +-
    (1.96 std(d) / sqrt(n) + 1 / n). If all changed pairs are lost in both directions, six of them
    are enough, as in the exact version of McNemar's test.
    """
    differences = after - before
    n = len(differences)
    half_width = 1.96 * float(differences.std()) / math.sqrt(n) + 1 / n
    return float(differences.mean()) + half_width < 0


def built_in_pairs(language: str | tuple[str, str]) -> GradedPairs:
    """Return the built-in graded pairs: a check, not a benchmark.

    `language` is that of the second sentences, after English, or both languages.
    """
    first, second = both_sides(language)
    return GradedPairs(f"built-in-{first}-{second}", *graded_pairs(first, second))


def development_pairs(
    path: str | Path | None, language: str | tuple[str, str], force: bool = False
) -> GradedPairs:
    """Read graded development pairs from a file (e.g. STS 2017 en-en), or return built-in pairs.

    The built-in pairs are in English and `language`, or in both languages if two are given. If
    there are none for a language, they are only in English. A known test set is refused; with
    `force`, there is only a warning.

    Examples:
        >>> from st_paragram import development_pairs
        >>> len(development_pairs(None, "es"))
        140
    """
    if path is None:
        is_built_in = set(both_sides(language)) <= set(LANGUAGES)
        return built_in_pairs(language if is_built_in else "en")
    pairs = read_graded_pairs(path)
    _refuse_test_set(path, pairs, "--dev with STS 2017 en-en or STS Benchmark dev", force)
    return pairs


def development_translations(
    path: str | Path, language: str | tuple[str, str], force: bool = False
) -> Translations:
    """Read development translations, two columns held out of the training data.

    `force` as in `development_pairs`.
    """
    source = TextSource((str(path),), both_sides(language))
    translations = read_translations(source, Path(path).name.split(".")[0])
    if (count := len(translations)) > MOST_TRANSLATIONS:
        raise EvaluationError(
            f"{path}: {count} translations; give at most {MOST_TRANSLATIONS} (1,000 are enough)"
        )
    _refuse_test_set(
        path, translations, "--dev-bitext with translations held out of the training data", force
    )
    return translations


def with_known_tokens(data: Pairs, model: SentenceTransformer) -> Pairs:
    """Leave out pairs with a side in which the model knows no token, and log their number.

    If no pair would remain, all remain.
    """
    first_known = known_texts(model, data.first)  # type: ignore[arg-type]
    known = first_known & known_texts(model, data.second)  # type: ignore[arg-type]
    if known.all() or not known.any():
        return data
    left_out = counted(int((~known).sum()), "pair")
    logger.warning(f"{data.name}: {left_out} left out, since the model knows no token of a side")
    kept: dict[str, Any] = {
        "first": list(compress(data.first, known)),
        "second": list(compress(data.second, known)),
    }
    if isinstance(data, GradedPairs):
        kept["grades"] = list(compress(data.grades, known))
    return replace(data, **kept)


def hold_out(store: PairStore) -> tuple[PairStore, Translations | None]:
    """Split off the last twentieth of a store as translations, at most 1,000 pairs.

    From a store of fewer than 1,000 pairs, none are split off.

    Examples:
        >>> from st_paragram import PairStore, hold_out
        >>> store, translations = hold_out(PairStore("data/en-es.h5"))
    """
    if len(store) < HELD_OUT:
        return store, None
    count = min(len(store) // 20, HELD_OUT)
    remaining = len(store) - count
    rows = np.arange(remaining, len(store))
    first = list(store.texts("a", rows))
    second = list(store.texts("b", rows))
    training = PairStore(store.path, remaining)
    training.is_checked = store.is_checked  # of the same file
    return training, Translations("held-out", first, second)


def _refuse_test_set(
    path: str | Path, data: GradedPairs | Translations, remedy: str, force: bool
) -> None:
    """Refuse development data that are a known test set; only warn with `force`."""
    from st_paragram.tools.cleaning.known_sentences import known_test_set_in

    match = known_test_set_in(data.first, data.second)
    if match is None:
        return
    seen = (
        f"{path}: holds about {match.share:.0%} of the {match.pairs:,} pairs of {match.name}, a"
        " test set; development scores select the model, so they no longer measure its quality"
    )
    if not force:
        raise EvaluationError(f"{seen}; give {remedy}, or --force-test-set to use it anyway")
    logger.warning(
        f"{seen}; used anyway because of --force-test-set: do not report this model's score on it"
    )
