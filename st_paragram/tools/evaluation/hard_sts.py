"""Hard STS: pairs whose words and meaning disagree in similarity (Wieting, Neubig,
Berg-Kirkpatrick, EMNLP 2020: BGT).

From all distinct pairs of STS 2012-2016, the splits take those with the lowest or highest symmetric
word error rate (SWER) and certain grades, or those with a negation on only one side. The sizes are
close to the paper's, which includes STS 2013 SMT (750 pairs) and does not name its tokenizer:
12,273 distinct pairs without SMT, 13,023 with it.

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

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.formatting import markdown_table
from st_paragram.tools.evaluation import report, sts
from st_paragram.tools.evaluation.benchmarks import Request
from st_paragram.tools.evaluation.files import GradedPairs
from st_paragram.tools.evaluation.scores import Floats, Score, correlation, cosines
from st_paragram.tools.evaluation.sts import YEARS, StsData, sts_folders

_NOTES = (
    (
        "Hard+ has pairs with different words and high grades, Hard- pairs with similar words and"
        " low grades. The paper's tables agree; its text swaps the two definitions."
    ),
    (
        "Published rows use the paper's splits, which include STS 2013 SMT and were made with"
        " another tokenizer."
    ),
)
_NEGATIONS = {"not", "'t"}
# A clitic with its apostrophe ("don't" is "don", "'t", as in the Moses tokenizer), a word, or
# another character.
_TOKEN = re.compile(r"'\w+|\w+|[^\w\s]")

#: Split -> number of pairs in the paper, if stated; share of the pairs by SWER (0.2: the lowest
#: fifth and ties, -0.2: the highest fifth, 0: all); lowest and highest grade. "negation" has only
#: pairs with one negated side.
SPLITS = {
    "all": ("13,023", 0, 0, 5),
    "Hard+": ("-", -0.2, 4, 5),
    "Hard-": ("-", 0.2, 0, 1),
    "negation": ("705", 0, 0, 5),
    "hard-low-20": ("404", 0.2, 0, 2),
    "hard-low-10": ("72", 0.1, 0, 1),
    "hard-high-20": ("937", -0.2, 3, 5),
    "hard-high-10": ("159", -0.1, 4, 5),
    "easy-high-20": ("1,380", -0.2, 0, 2),
    "easy-low-20": ("2,079", 0.2, 3, 5),
}


@dataclass(frozen=True)
class HardPairs:
    """The distinct pairs, the rows of each split (in the order of `SPLITS`), and the STS data that
    they come from.
    """

    pairs: GradedPairs
    splits: dict[str, NDArray[np.intp]]
    data: StsData


def find(data: Path, name: str) -> list[Path]:
    """Return the subfolders of evaluation data that have files of STS 2012-2016."""
    return sts_folders(data, YEARS)


def read(request: Request) -> HardPairs:
    """Read STS 2012-2016 from a folder or from the Hugging Face hub, and split the pairs."""
    data = sts.read(replace(request, sets=YEARS))
    pairs = different_pairs(data.sets.values())
    return HardPairs(pairs, split_rows(pairs), data)


def score(name: str, model: TextEncoder, data: HardPairs) -> Iterator[Score]:
    """Yield the correlation of a model's cosines with the grades in each split; None if either is
    constant.
    """
    values, grades = cosines(model, data.pairs), np.array(data.pairs.grades)
    for split, rows in data.splits.items():
        figures = correlation(values[rows], grades[rows])
        yield Score(name, "hard-sts", split, "Pearson", figures.pearson, len(rows))
        yield Score(name, "hard-sts", split, "Spearman", figures.spearman, len(rows))


def different_pairs(sets: Iterable[GradedPairs]) -> GradedPairs:
    """Return all pairs of several sets in order, without repeated combinations of sentences and
    grade.
    """
    rows = (
        row for pairs in sets for row in zip(pairs.first, pairs.second, pairs.grades, strict=True)
    )
    first, second, grades = map(list, zip(*dict.fromkeys(rows), strict=True))
    return GradedPairs("STS 2012-2016", first, second, grades)


def split_rows(pairs: GradedPairs) -> dict[str, NDArray[np.intp]]:
    """Return split name -> indices of its pairs, in the order of `SPLITS`.

    A pair may be in several splits.
    """
    texts = [
        (tokens(one), tokens(other)) for one, other in zip(pairs.first, pairs.second, strict=True)
    ]
    rates = np.array([symmetric_word_error_rate(one, other) for one, other in texts])
    negated = np.array(
        [_NEGATIONS.isdisjoint(one) != _NEGATIONS.isdisjoint(other) for one, other in texts]
    )
    grades = np.asarray(pairs.grades)
    kept = {name: chosen(rates, grades, *limits) for name, (_, *limits) in SPLITS.items()}
    kept["negation"] &= negated
    return {name: np.flatnonzero(mask) for name, mask in kept.items()}


def chosen(
    rates: Floats, grades: Floats, share: float, low: float, high: float
) -> NDArray[np.bool_]:
    """Return whether each pair has a rate in this share (see `SPLITS`) and a grade from `low` to
    `high`, inclusive.
    """
    kept: NDArray[np.bool_] = (low <= grades) & (grades <= high)
    if share > 0:
        kept &= rates <= np.quantile(rates, share, method="inverted_cdf")
    elif share < 0:
        kept &= rates >= np.quantile(rates, 1 + share, method="higher")
    return kept


def tokens(text: str) -> list[str]:
    """Return lower-cased words, clitics with their apostrophe, and all other characters except
    spaces one by one.
    """
    return _TOKEN.findall(text.lower().replace("’", "'"))


def symmetric_word_error_rate(first: Sequence[str], second: Sequence[str]) -> float:
    """Return the mean of the word error rates in both directions, from the tokens of two nonempty
    sentences.

    Both rates have the Levenshtein distance as numerator. The mean is 0 for equal sentences; it can
    exceed 1.
    """
    previous = list(range(len(second) + 1))
    for row, token in enumerate(first, start=1):
        current = [row]
        for above, diagonal, other in zip(previous[1:], previous, second, strict=False):
            current.append(diagonal if token == other else 1 + min(above, diagonal, current[-1]))
        previous = current
    return (previous[-1] / len(first) + previous[-1] / len(second)) / 2


def tables(scores: list[Score], data: HardPairs) -> Iterator[str]:
    """Yield a table of the splits, the scores of the models, and notes."""
    counts = []
    for name, (published, share, low, high) in SPLITS.items():
        definition = (
            f"{'lowest' if share > 0 else 'highest'} {abs(share):.0%} SWER, grade {low}-{high}"
        )
        if not share:
            definition = (
                'exactly one sentence has "not" or "\'t"'
                if name == "negation"
                else "all distinct pairs"
            )
        counts.append([name, definition, f"{len(data.splits[name]):,}", published])
    yield "### Hard STS: splits\n"
    yield "SWER is the symmetric word error rate of the two sentences. Grades range from 0 to 5.\n"
    yield markdown_table(("split", "definition", "pairs", "pairs in the paper"), counts) + "\n"
    known = "" if data.data.altered else "hard-sts"
    yield from report.section("Hard STS: Pearson\\Spearman x 100", scores, known=known)
    if data.data.altered:
        yield report.not_comparable(data.data.altered)
    yield from (f"- {note}" for note in (*_NOTES, *data.data.notes))
