"""Score a model on the STS benchmarks, and how sure its figures are."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.encoding.record import Correlation
from st_paragram.tools.evaluation.bootstrap import comparison, interval, resampled_pearson
from st_paragram.tools.evaluation.correlation import correlation, embed, graded_result, pair_cosines
from st_paragram.tools.evaluation.graded_pairs import GradedPairs
from st_paragram.tools.evaluation.results import Against, Comparison, GradedResult, Interval, Means, StsResult
from st_paragram.tools.evaluation.sts.protocols import (
    Mean,
    concatenation_means,
    concatenations,
    mteb_label,
    papers_means,
)
from st_paragram.tools.evaluation.sts.sts_files import StsData


@dataclass(frozen=True)
class SetScores:
    """A model's cosines and the grades of one data set, both (n,)."""

    cosines: NDArray[np.float64]
    grades: NDArray[np.float64]

    @cached_property
    def correlation(self) -> Correlation:
        """Of the two; NaN where `undefined` says why."""
        return correlation(self.cosines, self.grades)

    @property
    def undefined(self) -> str:
        """Why there is no correlation: "constant" scores, or "NaN" among them; empty if there is one."""
        if np.isfinite(self.correlation.pearson + self.correlation.spearman):
            return ""
        return "constant" if np.isfinite(self.cosines).all() else "NaN"

    def result(self, interval: Interval | None = None) -> GradedResult:
        """The figures, with the 95 % interval of Pearson's correlation if it is known."""
        return graded_result(len(self.grades), self.correlation, interval, self.undefined)


@dataclass(frozen=True)
class ModelScores:
    """What a model scores.

    Args:
        sets: key ("2012/MSRpar") -> scores.
        years: label ("2013", "2012 without MSRvid") -> scores on all pairs of the year, SMT left out.
        sentences_per_second: when all sentences of all sets are encoded once more, in one call.
    """

    sets: dict[str, SetScores]
    years: dict[str, SetScores]
    sentences_per_second: float

    @property
    def pearson(self) -> dict[str, float]:
        """Key -> Pearson's correlation."""
        return {key: scores.correlation.pearson for key, scores in self.sets.items()}

    @property
    def spearman(self) -> dict[str, float]:
        """Label of a year -> Spearman's correlation on the year's concatenation."""
        return {label: scores.correlation.spearman for label, scores in self.years.items()}

    def papers(self) -> dict[str, float | None]:
        """Label -> figure by the papers' protocol; None where sets are missing, NaN where one has no correlation."""
        return {mean.label: mean.of(self.pearson) for mean in papers_means(self.sets)}

    def sentence_bert(self) -> dict[str, float | None]:
        """Label -> figure by Sentence-BERT's protocol."""
        return {mean.label: mean.of(self.spearman) for mean in concatenation_means(self.years)}

    def mteb(self) -> dict[str, float | None]:
        """The name in mteb -> its main figure, Spearman."""
        both = {**self.years, **self.sets}
        names = {key: mteb_label(key) for key in both if key in self.years or key.startswith(("2017/", "stsb/"))}
        return {name: both[key].correlation.spearman for key, name in names.items() if name}


def score_sts(model: TextEncoder, data: StsData) -> ModelScores:
    """Encode every set's sentences once and compare cosines with grades; then encode all once more for the time."""
    sets = {key: _score(model, pairs) for key, pairs in data.sets.items()}
    years = {label: _joined([sets[key] for key in keys]) for label, keys in concatenations(sets).items()}
    years |= {year: _score(model, pairs) for year, pairs in data.concatenations.items()}
    return ModelScores(sets, dict(sorted(years.items())), _sentences_per_second(model, data))


def _score(model: TextEncoder, pairs: GradedPairs) -> SetScores:
    return SetScores(pair_cosines(model, pairs), np.asarray(pairs.grades, np.float64))


def _joined(parts: list[SetScores]) -> SetScores:
    return SetScores(np.concatenate([part.cosines for part in parts]), np.concatenate([part.grades for part in parts]))


def _sentences_per_second(model: TextEncoder, data: StsData) -> float:
    texts = [text for pairs in data.everything().values() for text in pairs.first + pairs.second]
    start = time.perf_counter()
    embed(model, texts)
    return len(texts) / (time.perf_counter() - start)


class Bootstrap:
    """Resampled figures of several models, on the same resamples of the pairs of each set."""

    def __init__(self, models: Mapping[str, ModelScores], resamples: int, seed: int = 0) -> None:
        """Resample all sets; each has its own seed, so that its figures do not depend on the others.

        Args:
            models: name -> scores, on the same data.
            resamples: number of them.
            seed: of the draws.

        Raises:
            EvaluationError: no resamples.
        """
        self.models = models
        self.resampled: dict[str, dict[str, NDArray[np.float64]]] = {name: {} for name in models}
        for key, of_first in next(iter(models.values())).sets.items():
            scores = np.stack([model.sets[key].cosines for model in models.values()])
            figures = resampled_pearson(scores, of_first.grades, resamples, (seed, zlib.crc32(key.encode())))
            for name, values in zip(models, figures, strict=True):
                self.resampled[name][key] = values

    def interval(self, model: str, key: str) -> Interval:
        """95 % interval of Pearson's correlation on a set."""
        return interval(self.resampled[model][key])

    def compare(self, first: str, second: str) -> dict[str, Comparison]:
        """Set's key, or label of the papers' means -> what the second model has more than the first.

        Means are resampled within each of their sets.
        """
        keys = self.resampled[first]
        singles = [Mean(key, ((key,),)) for key in keys if key.startswith(("2017/", "stsb/"))]
        means = [mean for mean in papers_means(keys) if mean.groups] + singles
        return {mean.label: self._compare(mean, first, second) for mean in means}

    def _compare(self, mean: Mean, first: str, second: str) -> Comparison:
        figures = [mean.of(self.models[name].pearson) for name in (first, second)]
        resampled = [mean.of(self.resampled[name]) for name in (first, second)]
        assert figures[0] is not None and figures[1] is not None  # means without groups are not asked for
        assert resampled[0] is not None and resampled[1] is not None
        return comparison(figures[0], figures[1], resampled[0], resampled[1])


def sts_result(
    scores: ModelScores, name: str, bootstrap: Bootstrap | None = None, against: str | None = None
) -> StsResult:
    """A model's figures, without the underlying cosines.

    Args:
        scores: of the model.
        name: of the model.
        bootstrap: of this model and others, for intervals and comparisons.
        against: name of the model to compare this one with; needs a bootstrap of both.
    """
    sets = {
        key: of_set.result(bootstrap.interval(name, key) if bootstrap else None) for key, of_set in scores.sets.items()
    }
    return StsResult(
        sets,
        {label: of_year.result() for label, of_year in scores.years.items()},
        _defined(scores.papers()),
        _defined(scores.sentence_bert()),
        _defined(scores.mteb()),
        scores.sentences_per_second,
        _against(bootstrap, against, name) if bootstrap and against else None,
    )


def _against(bootstrap: Bootstrap, first: str, second: str) -> Against:
    found = bootstrap.compare(first, second)
    return Against(first, {label: of if math.isfinite(of.difference) else None for label, of in found.items()})


def _defined(means: Mapping[str, float | None]) -> Means:
    """None also for what has no correlation."""
    return {label: None if value is None or not math.isfinite(value) else value for label, value in means.items()}
