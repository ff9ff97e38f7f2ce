"""Which sources help: leave-one-out or greedy addition, and lower weights for those that hurt.

Score: the mean of the correlation with graded pairs and of the accuracy on translations, in percent. The effect of a
source is the score with it less the score without it, mean over seeds; both trainings of a difference have one seed.
The standard error is that of such a mean, from the variance within sources, pooled over all of them: two or three seeds
say too little about one source alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from st_paragram.mixing.trainings import Trained, Trainings, Weights

CLEAR = 2  # standard errors


@dataclass(frozen=True)
class Finding:
    """What was found about a source, or a group of them.

    Attributes:
        group: Its name.
        effect: Score with it less score without it, in points.
        by_kind: The same of each kind of figures, "graded" and "translations".
        pairs: It brings to a training on all sources with which it was compared.
        weight: That it gets.
    """

    group: str
    effect: float
    by_kind: dict[str, float]
    pairs: int
    weight: float


@dataclass(frozen=True)
class Result:
    """What came of a search.

    Attributes:
        findings: Of each group, in the order in which they were named.
        error: The standard error of an effect.
        everything: The trainings on all sources.
        chosen: The trainings on the mixture that was chosen.
        temperatures: Mean score of the chosen mixture at each temperature that was tried.
        temperature: The one that is chosen.
    """

    findings: Sequence[Finding]
    error: float
    everything: Sequence[Trained]
    chosen: Sequence[Trained]
    temperatures: dict[float, float]
    temperature: float

    @property
    def gain(self) -> float:
        """Score of the chosen mixture less that of all sources."""
        return float(np.mean(differences(self.chosen, self.everything)))


def search(trainings: Trainings, temperatures: Sequence[float] = ()) -> Result:
    """Find the weight of each group of sources, and then the temperature.

    Args:
        trainings: Trains and scores.
        temperatures: To try on the mixture that is chosen, besides 1.
    """
    everything = trainings.of_all_seeds(dict.fromkeys(trainings.groups(), 1.0))
    find = _add if trainings.settings.method == "add" else _leave_out
    findings, error = find(trainings, everything)
    weights = {each.group: each.weight for each in findings}
    found = {1.0: trainings.of_all_seeds(weights)}
    found |= {each: trainings.of_all_seeds(weights, each) for each in temperatures}
    scores = {each: mean_score(of) for each, of in found.items()}
    best = max(scores, key=lambda each: (scores[each], -each))
    if scores[best] - scores[1.0] <= CLEAR * error:
        best = 1.0
    return Result(findings, error, everything, found[1.0], scores, best)


def most_trainings(groups: int, settings_seeds: int, method: str, temperatures: int) -> tuple[int, int]:
    """The fewest and the most trainings that a search takes."""
    if method == "add":
        fewest, most = 1 + groups + max(groups - 1, 0), 1 + groups * (groups + 1) // 2
    else:
        fewest, most = 1 + groups, 1 + groups + 2 * groups
    return settings_seeds * (fewest + temperatures), settings_seeds * (most + temperatures)


def mean_score(trained: Sequence[Trained]) -> float:
    """The mean over seeds."""
    return float(np.mean([each.score for each in trained]))


def differences(one: Sequence[Trained], other: Sequence[Trained]) -> NDArray[np.float64]:
    """Scores less other scores, seed by seed, (seeds,)."""
    return np.array([a.score - b.score for a, b in zip(one, other, strict=True)])


def standard_error(effects: Sequence[NDArray[np.float64]]) -> float:
    """Of the mean of one of several rows of differences, each (seeds,): from their pooled variance."""
    return math.sqrt(float(np.mean([np.var(each, ddof=1) for each in effects])) / len(effects[0]))


def _leave_out(trainings: Trainings, everything: Sequence[Trained]) -> tuple[list[Finding], float]:
    groups = trainings.groups()
    weights: dict[str, float] = dict.fromkeys(groups, 1.0)
    without = {name: trainings.of_all_seeds(weights | {name: 0.0}) for name in groups}
    effects = {name: differences(everything, without[name]) for name in groups}
    error = standard_error(list(effects.values()))
    harmful = [name for name in groups if effects[name].mean() < -CLEAR * error]
    for name in sorted(harmful, key=lambda name: float(effects[name].mean())):
        tried = (1.0, trainings.settings.lower_weight, 0.0)
        scores = {weight: _score(trainings, weights | {name: weight}) for weight in tried}
        weights[name] = max(tried, key=lambda weight: scores[weight])
    found = [
        Finding(name, float(effects[name].mean()), by_kind(everything, of), _pairs(everything, of), weights[name])
        for name, of in without.items()
    ]
    return found, error


def _add(trainings: Trainings, everything: Sequence[Trained]) -> tuple[list[Finding], float]:
    left, weights, found = trainings.groups(), dict[str, float](), dict[str, Finding]()
    effects, best, current = list[NDArray[np.float64]](), 0.0, list[Trained]()
    while left:
        tried = {name: trainings.of_all_seeds(weights | {name: 1.0}) for name in left}
        before = current or [Trained({"graded": {"": 0.0}}, 0, 0.0)] * trainings.settings.seeds
        gains = {name: differences(of, before) for name, of in tried.items()}
        effects += gains.values()
        name = max(left, key=lambda name: float(gains[name].mean()))
        best = float(gains[name].mean())
        for each in left if best <= 0 else [name]:
            effect, weight = float(gains[each].mean()), float(best > 0)
            kinds = by_kind(tried[each], current)
            found[each] = Finding(each, effect, kinds, _pairs(tried[each], current), weight)
        if best <= 0:
            break
        left, current, weights = [each for each in left if each != name], tried[name], weights | {name: 1.0}
    return [found[name] for name in trainings.groups()], standard_error(effects)


def _score(trainings: Trainings, weights: Weights) -> float:
    return mean_score(trainings.of_all_seeds(weights)) if any(weights.values()) else -math.inf


def by_kind(one: Sequence[Trained], other: Sequence[Trained]) -> dict[str, float]:
    """Mean difference of each kind of figures that there is."""
    return {kind: _kind(one, kind) - _kind(other, kind) for kind, figures in one[0].figures.items() if figures}


def _kind(trained: Sequence[Trained], kind: str) -> float:
    return float(np.mean([list(each.figures[kind].values()) for each in trained])) if trained else 0.0


def _pairs(one: Sequence[Trained], other: Sequence[Trained]) -> int:
    return one[0].pairs - (other[0].pairs if other else 0)
