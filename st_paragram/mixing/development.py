"""What models are scored on: graded pairs, and translations of each language; known test sets are refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from st_paragram.core.files import digest
from st_paragram.core.text.parallel import TextSource
from st_paragram.errors import EvaluationError
from st_paragram.tools.evaluation.graded_pairs import GradedPairs, read_graded_pairs
from st_paragram.tools.evaluation.known_test_sets import known_test_set_in
from st_paragram.tools.evaluation.translations import Translations, read_translations

MOST_TRANSLATIONS = 10_000


@dataclass(frozen=True)
class Development:
    """Sets to score models on.

    Attributes:
        graded: Graded pairs.
        translations: By languages, "en-es".
    """

    graded: Sequence[GradedPairs]
    translations: Mapping[str, Translations]

    def texts(self) -> set[str]:
        """All texts, as `plain` has them."""
        sets: Iterable[GradedPairs | Translations] = (*self.graded, *self.translations.values())
        return {plain(text) for each in sets for text in (*each.first, *each.second)}

    def digest(self) -> str:
        """What identifies these sets."""
        graded = [[each.name, each.first, each.second, each.grades] for each in self.graded]
        return digest(graded, {pair: [each.first, each.second] for pair, each in self.translations.items()})


def plain(text: str) -> str:
    """A text without differences of case and spaces."""
    return " ".join(text.casefold().split())


def total(figures: Mapping[str, Mapping[str, float]]) -> float:
    """The one score of a model: the mean of its correlation (mean over sets) and accuracy (mean over languages).

    Args:
        figures: Percent by name, under "graded" and "translations"; a kind without sets does not count.
    """
    return float(np.mean([np.mean(list(kind.values())) for kind in figures.values() if kind]))


def read_development(
    graded: Sequence[Path], translations: Sequence[TextSource], languages: tuple[str, str]
) -> Development:
    """Read the sets that were given.

    Raises:
        TextError: A file cannot be read, or a row is refused.
        EvaluationError: It is a known test set, there are too many translations, or two files for the same languages.
    """
    pairs, found = [read_graded_pairs(path) for path in graded], dict[str, Translations]()
    for path, each in zip(graded, pairs, strict=True):
        _refuse_test_set(str(path), each)
    for source in translations:
        pair = "-".join(source.pair_among(languages))
        if pair in found:
            raise EvaluationError(f"{source.name}: a second file of {pair}; put both into one file")
        found[pair] = read_translations(source, pair)
        if len(found[pair]) > MOST_TRANSLATIONS:
            seen = f"{source.name}: {len(found[pair]):,} translations"
            raise EvaluationError(f"{seen}; cut them down to {MOST_TRANSLATIONS:,}, 1,000 will do")
        _refuse_test_set(source.name, found[pair])
    return Development(pairs, found)


def _refuse_test_set(name: str, pairs: GradedPairs | Translations) -> None:
    if match := known_test_set_in(pairs.first, pairs.second):
        seen = f"{name}: holds about {match.share:.0%} of the {match.pairs:,} pairs of {match.name}, a test set"
        raise EvaluationError(f"{seen}; a test set that selects text no longer measures it; give development pairs")
