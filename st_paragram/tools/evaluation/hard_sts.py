"""Hard STS: pairs whose likeness in words and in meaning disagree (BGT: Wieting, Neubig, Berg-Kirkpatrick, EMNLP 2020).

Of all different pairs of STS 2012-2016, the splits take those of the lowest or highest symmetric word error rate (SWER)
and certain grades, or those with a negation on one side alone. Sizes come close to the paper's, which had STS 2013 SMT
(750 pairs) too and does not name its tokenizer: 12,273 different pairs without SMT, 13,023 with it.

The paper's text defines Hard+ and Hard- the other way round than here, but its examples (Table 1) and figures show that
its columns are as here: in Table 6, the lowest error rates with low grades give BGT 47.1 (Hard- has 46.6), and the
highest with high grades 18.1 and 20.0 (Hard+ has 22.5).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.models import TextEncoder
from st_paragram.core.words import markdown_table
from st_paragram.tools.evaluation import report, sts
from st_paragram.tools.evaluation.benchmarks import Request
from st_paragram.tools.evaluation.files import GradedPairs
from st_paragram.tools.evaluation.scores import Floats, Score, correlation, cosines
from st_paragram.tools.evaluation.sts import YEARS, StsData, sts_folders

_NOTES = (
    "Hard+ holds pairs unlike in words with high grades, Hard- pairs alike in words with low grades, as the paper's "
    "tables have them; its text has the two definitions the other way round.",
    "Published rows are on the paper's splits, which have STS 2013 SMT too and were made with another tokenizer.",
)
_NEGATIONS = {"not", "'t"}
# A clitic with its apostrophe ("don't" is "don", "'t"; so the Moses tokenizer has it), a word, or another character.
_TOKEN = re.compile(r"'\w+|\w+|[^\w\s]")

#: Split -> its pairs in the paper, if it says so; its share of the pairs by SWER (0.2 the lowest fifth and those equal
#: to its last, -0.2 the highest, 0 all); and its lowest and highest grade. "negation" has negated pairs alone.
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
    """The different pairs, the rows of each split (in the order of `SPLITS`), and the STS data that they are of."""

    pairs: GradedPairs
    splits: dict[str, NDArray[np.intp]]
    data: StsData


def find(data: Path, name: str) -> list[Path]:
    """The folders of a folder of evaluation data with files of STS 2012-2016."""
    return sts_folders(data, YEARS)


def read(request: Request) -> HardPairs:
    """Split what a folder, or the Hugging Face hub, has of STS 2012-2016."""
    data = sts.read(replace(request, sets=YEARS))
    pairs = different_pairs(data.sets.values())
    return HardPairs(pairs, split_rows(pairs), data)


def score(name: str, model: TextEncoder, data: HardPairs) -> Iterator[Score]:
    """Correlation of a model's cosines with grades within each split; None where all of one side are alike."""
    found, grades = cosines(model, data.pairs), np.array(data.pairs.grades)
    for split, rows in data.splits.items():
        both = correlation(found[rows], grades[rows])
        yield Score(name, "hard-sts", split, "Pearson", both.pearson, len(rows))
        yield Score(name, "hard-sts", split, "Spearman", both.spearman, len(rows))


def different_pairs(sets: Iterable[GradedPairs]) -> GradedPairs:
    """All pairs of some sets in their order, each combination of sentences and grade once."""
    rows = (row for pairs in sets for row in zip(pairs.first, pairs.second, pairs.grades, strict=True))
    first, second, grades = map(list, zip(*dict.fromkeys(rows), strict=True))
    return GradedPairs("STS 2012-2016", first, second, grades)


def split_rows(pairs: GradedPairs) -> dict[str, NDArray[np.intp]]:
    """Split the pairs: name -> indices of its pairs, in the order of `SPLITS`. A pair may be in several splits."""
    texts = [(tokens(one), tokens(other)) for one, other in zip(pairs.first, pairs.second, strict=True)]
    rates = np.array([symmetric_word_error_rate(one, other) for one, other in texts])
    negated = np.array([_NEGATIONS.isdisjoint(one) != _NEGATIONS.isdisjoint(other) for one, other in texts])
    grades = np.asarray(pairs.grades)
    kept = {name: chosen(rates, grades, *limits) for name, (_, *limits) in SPLITS.items()}
    kept["negation"] &= negated
    return {name: np.flatnonzero(of) for name, of in kept.items()}


def chosen(rates: Floats, grades: Floats, share: float, low: float, high: float) -> NDArray[np.bool_]:
    """Whether each pair has a rate of this share, see `SPLITS`, and a grade from `low` to `high`, both included."""
    kept: NDArray[np.bool_] = (low <= grades) & (grades <= high)
    if share > 0:
        kept &= rates <= np.quantile(rates, share, method="inverted_cdf")
    elif share < 0:
        kept &= rates >= np.quantile(rates, 1 + share, method="higher")
    return kept


def tokens(text: str) -> list[str]:
    """Lower-cased words, clitics from the apostrophe on, and every other character but spaces by itself."""
    return _TOKEN.findall(text.lower().replace("’", "'"))


def symmetric_word_error_rate(first: Sequence[str], second: Sequence[str]) -> float:
    """Half of the word error rate of either sentence against the other, from their tokens, at least one of each.

    Both have the Levenshtein distance in the numerator. 0 for equal sentences; above 1 where one is much the longer.
    """
    previous = list(range(len(second) + 1))
    for row, token in enumerate(first, start=1):
        current = [row]
        for above, diagonal, other in zip(previous[1:], previous, second, strict=False):
            current.append(diagonal if token == other else 1 + min(above, diagonal, current[-1]))
        previous = current
    return (previous[-1] / len(first) + previous[-1] / len(second)) / 2


def tables(scores: list[Score], data: HardPairs) -> Iterator[str]:
    """What the splits are, how models do on them, and notes, part by part."""
    counts = []
    for name, (published, share, low, high) in SPLITS.items():
        definition = f"{'lowest' if share > 0 else 'highest'} {abs(share):.0%} SWER, gold {low}-{high}"
        if not share:
            definition = 'exactly one sentence has "not" or "\'t"' if name == "negation" else "all different pairs"
        counts.append([name, definition, f"{len(data.splits[name]):,}", published])
    yield "### Hard STS: which pairs\n"
    yield "SWER is the symmetric word error rate of the two sentences. Gold is their grade, from 0 to 5.\n"
    yield markdown_table(("split", "definition", "pairs", "pairs in the paper"), counts) + "\n"
    known = "" if data.data.altered else "hard-sts"
    yield from report.section("Hard STS: Pearson\\Spearman x 100", scores, known=known)
    if data.data.altered:
        yield report.not_comparable(data.data.altered)
    yield from (f"- {note}" for note in (*_NOTES, *data.data.notes))
