"""Hard STS: pairs whose likeness in words and in meaning disagree (BGT: Wieting, Neubig, Berg-Kirkpatrick, EMNLP 2020).

Of all different pairs of STS 2012-2016, the splits take those of the lowest or highest symmetric word error rate (SWER)
and certain grades, or those with a negation on one side alone. Sizes come close to the paper's, which had STS 2013 SMT
(750 pairs) too and does not name its tokeniser: 12,273 different pairs without SMT, 13,023 with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from st_paragram.errors import EvaluationError
from st_paragram.evaluation.correlation import correlation, cosines
from st_paragram.evaluation.graded_pairs import HIGHEST, LOWEST, GradedPairs
from st_paragram.evaluation.sts.word_error_rate import symmetric_word_error_rate, tokens
from st_paragram.models.training_record import Correlation

_NEGATIONS = {"not", "'t"}


@dataclass(frozen=True)
class Split:
    """Which pairs a split has.

    Args:
        name: as in results.
        share: of the pairs by SWER: 0.2 the lowest fifth (and those equal to its last), -0.2 the highest; 0 all.
        grades: lowest and highest, both included.
        negation: only pairs with "not" or "'t" in exactly one sentence.
    """

    name: str
    share: float = 0.0
    grades: tuple[float, float] = (LOWEST, HIGHEST)
    negation: bool = False

    @property
    def definition(self) -> str:
        """In words."""
        if self.negation:
            return 'exactly one sentence has "not" or "\'t"'
        if not self.share:
            return "all different pairs"
        side = "lowest" if self.share > 0 else "highest"
        return f"{side} {abs(self.share):.0%} SWER, gold {self.grades[0]:g}-{self.grades[1]:g}"

    def rows(
        self, rates: NDArray[np.float64], grades: NDArray[np.float64], negated: NDArray[np.bool_]
    ) -> NDArray[np.intp]:
        """Indices of its pairs, from the SWER, grade and negation of each pair, (n,)."""
        kept = (self.grades[0] <= grades) & (grades <= self.grades[1])
        if self.negation:
            kept &= negated
        if self.share > 0:
            kept &= rates <= np.quantile(rates, self.share, method="inverted_cdf")
        elif self.share < 0:
            kept &= rates >= np.quantile(rates, 1 + self.share, method="higher")
        return np.flatnonzero(kept)


# Hard+ and Hard- as the paper's text defines them; its Table 1 shows examples with the names the other way round.
SPLITS = (
    Split("all"),
    Split("Hard+", 0.2, (0, 1)),
    Split("Hard-", -0.2, (4, 5)),
    Split("negation", negation=True),
    Split("hard-low-20", 0.2, (0, 2)),
    Split("hard-low-10", 0.1, (0, 1)),
    Split("hard-high-20", -0.2, (3, 5)),
    Split("hard-high-10", -0.1, (4, 5)),
    Split("easy-high-20", -0.2, (0, 2)),
    Split("easy-low-20", 0.2, (3, 5)),
)


@dataclass(frozen=True)
class SplitScore:
    """The number of pairs of a split, and how a model does on them."""

    pairs: int
    correlation: Correlation


def different_pairs(sets: Iterable[GradedPairs]) -> GradedPairs:
    """All pairs of some sets in their order, each combination of sentences and grade once.

    Raises:
        EvaluationError: there are none.
    """
    rows = dict.fromkeys(row for pairs in sets for row in zip(pairs.first, pairs.second, pairs.grades, strict=True))
    if not rows:
        raise EvaluationError("Hard STS: no pairs of STS 2012-2016; get them with data_prep/get_sts.py")
    first, second, grades = map(list, zip(*rows, strict=True))
    return GradedPairs("STS 2012-2016", first, second, grades)


def split_rows(pairs: GradedPairs) -> dict[str, NDArray[np.intp]]:
    """Split the pairs: name -> indices of its pairs, in the order of `SPLITS`. A pair may be in several splits."""
    texts = [(tokens(one), tokens(other)) for one, other in zip(pairs.first, pairs.second, strict=True)]
    rates = np.array([symmetric_word_error_rate(one, other) for one, other in texts])
    negated = np.array([_NEGATIONS.isdisjoint(one) != _NEGATIONS.isdisjoint(other) for one, other in texts])
    return {split.name: split.rows(rates, np.asarray(pairs.grades), negated) for split in SPLITS}


def score_hard_sts(
    model: SentenceTransformer, pairs: GradedPairs, rows: dict[str, NDArray[np.intp]]
) -> dict[str, SplitScore]:
    """Correlate cosines with grades within each split; NaN where all grades or cosines are alike.

    Args:
        model: to be scored.
        pairs: all of them.
        rows: of each split, see `split_rows`.

    Raises:
        EvaluationError: the model gave NaN or infinite numbers.
    """
    scores, grades = cosines(model, pairs), np.asarray(pairs.grades)
    return {name: SplitScore(len(some), _correlation(scores[some], grades[some])) for name, some in rows.items()}


def _correlation(scores: NDArray[np.float64], grades: NDArray[np.float64]) -> Correlation:
    return correlation(scores, grades) if len(scores) > 1 else Correlation(math.nan, math.nan)
