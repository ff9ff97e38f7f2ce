"""Hard STS: pairs whose words and meaning disagree in similarity.

Wieting, Neubig and Berg-Kirkpatrick, EMNLP 2020 (BGT). From all distinct pairs of STS 2012-2016,
the splits take those with the lowest or highest symmetric word error rate (SWER) and certain
grades, or those with a negation on only one side. The sizes are close to the paper's, which
includes STS 2013 SMT (750 pairs) and does not name its tokenizer: 12,273 distinct pairs without
SMT, 13,023 with it.

The paper's text swaps the definitions of Hard+ and Hard-, but its examples (Table 1) and figures
follow those used here: in Table 6, BGT reaches 47.1 on the lowest error rates with low grades
(Hard-: 46.6), and 18.1 and 20.0 on the highest error rates with high grades (Hard+: 22.5).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.arrays import Floats
from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.formatting import markdown_table
from st_paragram.core.settings import read_yaml
from st_paragram.tools.evaluation import report, sts_sets
from st_paragram.tools.evaluation.files import GradedPairs
from st_paragram.tools.evaluation.request import Request
from st_paragram.tools.evaluation.scores import Score, correlation, cosines
from st_paragram.tools.evaluation.sts_sets import YEARS, StsData

_NOTES = (
    "Hard+ has pairs with different words and high grades, Hard- pairs with similar words and low"
    " grades. The paper's tables agree; its text swaps the two definitions.",
    "Published rows use the paper's splits, which include STS 2013 SMT and were made with another"
    " tokenizer.",
)
_NEGATIONS = {"not", "'t"}
# A clitic with its apostrophe ("don't" is "don", "'t", as in the Moses tokenizer), a word, or
# another character.
_TOKEN = re.compile(r"'\w+|\w+|[^\w\s]")

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Split:
    """A part of the pairs, by error rate and grade."""

    name: str
    pairs_in_paper: str  # "-" if the paper does not state their number
    # share of the pairs by SWER: 0.2 for the lowest fifth and ties, -0.2 for the highest fifth, 0
    # for all
    share: float = 0
    lowest_grade: int = 0
    highest_grade: int = 5
    is_negation: bool = False  # only pairs with one negated side

    @property
    def definition(self) -> str:
        """Description for the table of splits."""
        if self.is_negation:
            return 'exactly one sentence has "not" or "\'t"'
        if not self.share:
            return "all distinct pairs"
        end = "lowest" if self.share > 0 else "highest"
        grades = f"{self.lowest_grade}-{self.highest_grade}"
        return f"{end} {abs(self.share):.0%} SWER, grade {grades}"

    def mask(self, rates: Floats, grades: Floats, negated: Mask) -> Mask:
        """Return whether each pair is in this split, (n,).

        Args:
            rates: Error rates, (n,).
            grades: Grades, (n,).
            negated: Whether exactly one side has a negation, (n,).
        """
        mask: Mask = (self.lowest_grade <= grades) & (grades <= self.highest_grade)
        if self.share > 0:
            mask &= rates <= np.quantile(rates, self.share, method="inverted_cdf")
        if self.share < 0:
            mask &= rates >= np.quantile(rates, 1 + self.share, method="higher")
        if self.is_negation:
            mask &= negated
        return mask


SPLITS: list[Split] = []
for _name, _fields in read_yaml(Path(__file__).with_name("hard_sts.yaml")).items():
    SPLITS.append(Split(_name, **_fields))


@dataclass(frozen=True)
class HardPairs:
    """The distinct pairs, the rows of each split by its name, and the STS data they come from."""

    pairs: GradedPairs
    rows: dict[str, NDArray[np.intp]]
    data: StsData


def find(data: Path, benchmark: str) -> bool:
    """Whether a folder of evaluation data has sets of STS 2012-2016."""
    return sts_sets.is_in(data, YEARS)


def read(request: Request) -> HardPairs:
    """Read STS 2012-2016 from a folder or from the Hugging Face hub, and split the pairs."""
    data = sts_sets.read(replace(request, sets=YEARS))
    pairs = distinct_pairs(data.sets.values())
    return HardPairs(pairs, split_rows(pairs), data)


def score(name: str, model: TextEncoder, data: HardPairs) -> Iterator[Score]:
    """Yield the correlation of a model's cosines with the grades in each split.

    It is None if either is constant.
    """
    values = cosines(model, data.pairs)
    grades = np.array(data.pairs.grades)
    for split, rows in data.rows.items():
        figures = correlation(values[rows], grades[rows])
        pearson = Score(name, "hard-sts", split, "Pearson", value=figures.pearson, items=len(rows))
        yield pearson
        yield replace(pearson, measure="Spearman", value=figures.spearman)


def distinct_pairs(sets: Iterable[GradedPairs]) -> GradedPairs:
    """Return all pairs of several sets in order, without repeated pairs of the same grade."""
    rows: dict[tuple[str, str, float], None] = {}
    for pairs in sets:
        rows.update(dict.fromkeys(zip(pairs.first, pairs.second, pairs.grades, strict=True)))
    distinct = GradedPairs("STS 2012-2016", [], [], [])
    for first, second, grade in rows:
        distinct.first.append(first)
        distinct.second.append(second)
        distinct.grades.append(grade)
    return distinct


def split_rows(pairs: GradedPairs) -> dict[str, NDArray[np.intp]]:
    """Return name of a split -> indices of its pairs; a pair may be in several splits."""
    rates = np.zeros(len(pairs))
    negated = np.zeros(len(pairs), bool)
    for row in range(len(pairs)):
        first = tokens(pairs.first[row])
        second = tokens(pairs.second[row])
        rates[row] = symmetric_word_error_rate(first, second)
        negated[row] = _NEGATIONS.isdisjoint(first) != _NEGATIONS.isdisjoint(second)
    grades = np.asarray(pairs.grades)
    return {split.name: np.flatnonzero(split.mask(rates, grades, negated)) for split in SPLITS}


def tokens(text: str) -> list[str]:
    """Return lower-cased words, clitics with their apostrophe, and other characters one by one."""
    return _TOKEN.findall(text.lower().replace("’", "'"))


def symmetric_word_error_rate(first: Sequence[str], second: Sequence[str]) -> float:
    """Return the mean of the word error rates in both directions, from the tokens of two sentences.

    Both rates have the Levenshtein distance as numerator. The mean is 0 for equal sentences; it can
    exceed 1. No sentence may be empty.
    """
    previous = list(range(len(second) + 1))
    for row, token in enumerate(first, start=1):
        current = [row]
        for column, other_token in enumerate(second):
            if token == other_token:
                distance = previous[column]
            else:
                distance = 1 + min(previous[column + 1], previous[column], current[column])
            current.append(distance)
        previous = current
    distance = previous[-1]
    return (distance / len(first) + distance / len(second)) / 2


def tables(scores: list[Score], data: HardPairs) -> Iterator[str]:
    """Yield a table of the splits, the scores of the models, and notes."""
    lines = []
    for split in SPLITS:
        count = f"{len(data.rows[split.name]):,}"
        lines.append([split.name, split.definition, count, split.pairs_in_paper])
    yield "### Hard STS: splits\n"
    yield "SWER is the symmetric word error rate of the two sentences. Grades range from 0 to 5.\n"
    yield markdown_table(["split", "definition", "pairs", "pairs in the paper"], lines) + "\n"
    altered = data.data.altered
    yield from report.section(
        "Hard STS: Pearson\\Spearman x 100", scores, published_table="" if altered else "hard-sts"
    )
    if altered:
        yield report.not_comparable(altered)
    for note in (*_NOTES, *data.data.notes):
        yield f"- {note}"
