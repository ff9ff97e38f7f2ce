"""Hard STS: pairs whose likeness in words and in meaning disagree (BGT: Wieting, Neubig, Berg-Kirkpatrick, EMNLP 2020).

Of all different pairs of STS 2012-2016, the splits take those of the lowest or highest symmetric word error rate (SWER)
and certain grades, or those with a negation on one side alone. Sizes come close to the paper's, which had STS 2013 SMT
(750 pairs) too and does not name its tokeniser: 12,273 different pairs without SMT, 13,023 with it.

Hard+ here is the split of pairs unlike in words with high grades, Hard- that of pairs alike in words with low grades.
The paper's text has the two definitions the other way round, but its examples (Table 1) and figures (Table 6, where
the lowest error rates with low grades give BGT 47.1, and the highest with high grades 18.1 and 20.0) show that its
columns Hard- (46.6) and Hard+ (22.5) are as here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from st_paragram.core.encoding.training_record import Correlation
from st_paragram.errors import EvaluationError
from st_paragram.tools.evaluation.correlation import correlation, cosines, graded_result
from st_paragram.tools.evaluation.graded_pairs import HIGHEST, LOWEST, GradedPairs
from st_paragram.tools.evaluation.results import HardStsResult
from st_paragram.tools.evaluation.sts.word_error_rate import symmetric_word_error_rate, tokens

NOTES = (
    "Hard+ holds pairs unlike in words with high grades, Hard- pairs alike in words with low grades, as the paper's "
    "tables have them; its text has the two definitions the other way round.",
    "Published rows are on the paper's splits, which have STS 2013 SMT too and were made with another tokeniser.",
)

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


SPLITS = (
    Split("all"),
    Split("Hard+", -0.2, (4, 5)),
    Split("Hard-", 0.2, (0, 1)),
    Split("negation", negation=True),
    Split("hard-low-20", 0.2, (0, 2)),
    Split("hard-low-10", 0.1, (0, 1)),
    Split("hard-high-20", -0.2, (3, 5)),
    Split("hard-high-10", -0.1, (4, 5)),
    Split("easy-high-20", -0.2, (0, 2)),
    Split("easy-low-20", 0.2, (3, 5)),
)


def different_pairs(sets: Iterable[GradedPairs]) -> GradedPairs:
    """All pairs of some sets in their order, each combination of sentences and grade once.

    Raises:
        EvaluationError: there are none.
    """
    rows = dict.fromkeys(row for pairs in sets for row in zip(pairs.first, pairs.second, pairs.grades, strict=True))
    if not rows:
        raise EvaluationError("Hard STS: no pairs of STS 2012-2016; fetch them with `st-paragram download --sets sts`")
    first, second, grades = map(list, zip(*rows, strict=True))
    return GradedPairs("STS 2012-2016", first, second, grades)


def split_rows(pairs: GradedPairs) -> dict[str, NDArray[np.intp]]:
    """Split the pairs: name -> indices of its pairs, in the order of `SPLITS`. A pair may be in several splits."""
    texts = [(tokens(one), tokens(other)) for one, other in zip(pairs.first, pairs.second, strict=True)]
    rates = np.array([symmetric_word_error_rate(one, other) for one, other in texts])
    negated = np.array([_NEGATIONS.isdisjoint(one) != _NEGATIONS.isdisjoint(other) for one, other in texts])
    return {split.name: split.rows(rates, np.asarray(pairs.grades), negated) for split in SPLITS}


def score_hard_sts(model: SentenceTransformer, pairs: GradedPairs, rows: dict[str, NDArray[np.intp]]) -> HardStsResult:
    """Correlate cosines with grades within each split; no correlation where all grades or cosines are alike.

    Args:
        model: to be scored.
        pairs: all of them.
        rows: of each split, see `split_rows`.

    Raises:
        EvaluationError: the model gave NaN or infinite numbers.
    """
    scores, grades = cosines(model, pairs), np.asarray(pairs.grades)
    found = {name: _correlation(scores[some], grades[some]) for name, some in rows.items()}
    return HardStsResult({name: graded_result(len(rows[name]), of_split) for name, of_split in found.items()})


def _correlation(scores: NDArray[np.float64], grades: NDArray[np.float64]) -> Correlation:
    return correlation(scores, grades) if len(scores) > 1 else Correlation(math.nan, math.nan)
