"""Hard STS: pairs whose likeness in words and in meaning disagree (BGT: Wieting, Neubig, Berg-Kirkpatrick, EMNLP 2020).

Of all different pairs of STS 2012-2016, the splits take those of the lowest or highest symmetric word error rate (SWER)
and certain grades, or those with a negation on one side alone. Sizes come close to the paper's, which had STS 2013 SMT
(750 pairs) too and does not name its tokenizer: 12,273 different pairs without SMT, 13,023 with it.

Hard+ here is the split of pairs unlike in words with high grades, Hard- that of pairs alike in words with low grades.
The paper's text has the two definitions the other way round, but its examples (Table 1) and figures (Table 6, where
the lowest error rates with low grades give BGT 47.1, and the highest with high grades 18.1 and 20.0) show that its
columns Hard- (46.6) and Hard+ (22.5) are as here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.encoding.record import Correlation
from st_paragram.core.tables import MISSING, hundredths, markdown_table
from st_paragram.errors import EvaluationError
from st_paragram.tools.evaluation.base import Request
from st_paragram.tools.evaluation.correlation import correlation, cosines, graded_result
from st_paragram.tools.evaluation.graded_pairs import HIGHEST, LOWEST, GradedPairs
from st_paragram.tools.evaluation.models import score_each
from st_paragram.tools.evaluation.published import Source, rows
from st_paragram.tools.evaluation.published_sets import not_comparable
from st_paragram.tools.evaluation.results import HardStsResult, HardStsRun
from st_paragram.tools.evaluation.sts.catalogue import YEARS
from st_paragram.tools.evaluation.sts.sts_files import find_sts, has_sts

NOTES = (
    "Hard+ holds pairs unlike in words with high grades, Hard- pairs alike in words with low grades, as the paper's "
    "tables have them; its text has the two definitions the other way round.",
    "Published rows are on the paper's splits, which have STS 2013 SMT too and were made with another tokenizer.",
)

_NEGATIONS = {"not", "'t"}

# A clitic with its apostrophe ("don't" is "don", "'t"; so the Moses tokenizer has it), a word, or another character.
_TOKEN = re.compile(r"'\w+|\w+|[^\w\s]")

# Pearson. SWER is the symmetric word error rate; "easy" and "hard" say how SWER and grade go together.
PUBLISHED = rows(
    Source.BGT,
    "all negation hard-low-20 hard-low-10 hard-high-20 hard-high-10 easy-high-20 easy-low-20",
    """
    SP (1M en-fr pairs): 74.1 68.7 54.9 22.5 14.4 10.8 49.9 42.2
    BGT (1M en-fr pairs): 75.3 73.1 63.6 47.1 20.0 18.1 51.5 43.0
    """,
)
PUBLISHED_PAIRS = {
    "all": 13_023,
    "negation": 705,  # "not" or "'t" in exactly one sentence
    "hard-low-20": 404,  # lowest 20 % SWER, gold 0-2
    "hard-low-10": 72,  # lowest 10 %, gold 0-1
    "hard-high-20": 937,  # highest 20 %, gold 3-5
    "hard-high-10": 159,  # highest 10 %, gold 4-5
    "easy-high-20": 1_380,  # highest 20 %, gold 0-2
    "easy-low-20": 2_079,  # lowest 20 %, gold 3-5
}
# The paper's columns. By its other figures Hard+ has pairs unlike in words with high grades, Hard- pairs alike in words
# with low grades, as here; its text swaps the two definitions.
PUBLISHED_NAMED = rows(Source.BGT, "Hard+ Hard-", "SP (1M en-fr pairs): 19.1 29.8\nBGT (1M en-fr pairs): 22.5 46.6")


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

RUN = HardStsRun


def has_data(data: Path) -> bool:
    """Whether a folder of evaluation data has files of STS 2012-2016."""
    return has_sts(data, YEARS)


def run(request: Request) -> HardStsRun:
    """Score models on the splits of what a folder, or the Hugging Face hub, has of STS 2012-2016.

    Raises:
        EvaluationError: there are no pairs, or a model gave NaN or infinite numbers; or as `find_sts`.
        ModelDirectoryError: a model is not there or cannot be read.
    """
    data = find_sts(request.data, YEARS, request.hub)
    pairs = different_pairs(data.everything().values())
    splits = split_rows(pairs)
    results = score_each(request.models, lambda model: score_hard_sts(model, pairs, splits), request.untrained)
    return HardStsRun(results, (*NOTES, *data.notes), data.altered())


def different_pairs(sets: Iterable[GradedPairs]) -> GradedPairs:
    """All pairs of some sets in their order, each combination of sentences and grade once.

    Raises:
        EvaluationError: there are none.
    """
    different = dict.fromkeys(
        row for pairs in sets for row in zip(pairs.first, pairs.second, pairs.grades, strict=True)
    )
    if not different:
        raise EvaluationError("Hard STS: no pairs of STS 2012-2016; read them from the Hugging Face hub with --hub")
    first, second, grades = map(list, zip(*different, strict=True))
    return GradedPairs("STS 2012-2016", first, second, grades)


def split_rows(pairs: GradedPairs) -> dict[str, NDArray[np.intp]]:
    """Split the pairs: name -> indices of its pairs, in the order of `SPLITS`. A pair may be in several splits."""
    texts = [(tokens(one), tokens(other)) for one, other in zip(pairs.first, pairs.second, strict=True)]
    rates = np.array([symmetric_word_error_rate(one, other) for one, other in texts])
    negated = np.array([_NEGATIONS.isdisjoint(one) != _NEGATIONS.isdisjoint(other) for one, other in texts])
    return {split.name: split.rows(rates, np.asarray(pairs.grades), negated) for split in SPLITS}


def tokens(text: str) -> list[str]:
    """Lower-cased words, clitics from the apostrophe on, and every other character but spaces by itself."""
    return _TOKEN.findall(text.lower().replace("’", "'"))


def edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """The fewest insertions, deletions and substitutions of tokens that make `first` into `second` (Levenshtein)."""
    previous = list(range(len(second) + 1))
    for row, token in enumerate(first, start=1):
        left = row
        current = [row]
        for above, diagonal, other in zip(previous[1:], previous, second, strict=False):
            left = diagonal if token == other else 1 + min(above, diagonal, left)
            current.append(left)
        previous = current
    return previous[-1]


def symmetric_word_error_rate(first: Sequence[str], second: Sequence[str]) -> float:
    """Half of the word error rate of either sentence against the other (BGT: Wieting et al., EMNLP 2020).

    0 for equal sentences; above 1 where one is much the longer.

    Args:
        first: tokens.
        second: tokens.

    Raises:
        EvaluationError: a sentence has no tokens; a rate of errors is then undefined.
    """
    if not first or not second:
        raise EvaluationError("a sentence without tokens has no word error rate; take the pair out")
    distance = edit_distance(first, second)
    return (distance / len(first) + distance / len(second)) / 2


def score_hard_sts(model: TextEncoder, pairs: GradedPairs, splits: dict[str, NDArray[np.intp]]) -> HardStsResult:
    """Correlate cosines with grades within each split; no correlation where all grades or cosines are alike.

    Args:
        model: to be scored.
        pairs: all of them.
        splits: rows of each split, see `split_rows`.

    Raises:
        EvaluationError: the model gave NaN or infinite numbers.
    """
    scores, grades = cosines(model, pairs), np.asarray(pairs.grades)
    found = {name: _correlation(scores[some], grades[some]) for name, some in splits.items()}
    return HardStsResult({name: graded_result(len(splits[name]), of_split) for name, of_split in found.items()})


def report(found: HardStsRun) -> Iterator[str]:
    """What the splits are, how models do on them, and notes, part by part."""
    sizes = {name: of.pairs for name, of in next(iter(found.models.values())).splits.items()}
    splits = [split for split in SPLITS if split.name in sizes]
    counts = [[s.name, s.definition, f"{sizes[s.name]:,}", _paper_count(s.name)] for s in splits]
    yield "## Hard STS: which pairs\n"
    yield "SWER is the symmetric word error rate of the two sentences. Gold is their grade, from 0 to 5.\n"
    yield markdown_table(("split", "definition", "pairs", "pairs in the paper"), counts)
    yield "\n## Hard STS: Pearson / Spearman x 100\n"
    cells = [[name, *_cells(result)] for name, result in found.models.items()]
    yield markdown_table(("model", *sizes), [*cells, *([] if found.altered else _published_rows(list(sizes)))]) + "\n"
    if found.altered:
        yield not_comparable(found.altered)
    yield from (f"- {note}" for note in found.notes)


def _paper_count(name: str) -> str:
    return f"{PUBLISHED_PAIRS[name]:,}" if name in PUBLISHED_PAIRS else MISSING


def _cells(result: HardStsResult) -> list[str]:
    return [f"{hundredths(of.pearson)} / {hundredths(of.spearman)}" for of in result.splits.values()]


def _published_rows(splits: list[str]) -> list[list[str]]:
    """One row a model: the paper has the two splits with names and those of its appendix in two tables."""
    scores: dict[str, dict[str, float]] = {}
    for row in (*PUBLISHED, *PUBLISHED_NAMED):
        scores[row.label] = scores.get(row.label, {}) | row.scores
    return [[label, *(hundredths(found.get(split)) for split in splits)] for label, found in scores.items()]


def _correlation(scores: NDArray[np.float64], grades: NDArray[np.float64]) -> Correlation:
    return correlation(scores, grades) if len(scores) > 1 else Correlation(math.nan, math.nan)
