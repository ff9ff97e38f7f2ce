"""Measures of sentences that were written: is the meaning the source's, is the form the style's, is either copied?

All texts are compared after NFKC, without difference of case or of spaces. Words are runs of letters and digits, with
apostrophes and hyphens inside; a text without spaces is one word. Marks are the punctuation of Unicode outside words.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import regex

from st_paragram.tools.score_files import score_pairs

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+(?:['’‐-][\p{L}\p{M}\p{N}]+)*")
_MARK = regex.compile(r"\p{P}")

#: The measures' names in tables.
TITLES = {
    "cosine": "cosine with source",
    "copies_source": "equal to source",
    "words_of_source": "words of source",
    "length": "length of style",
    "first_mark": "first mark of style",
    "marks": "marks of style, F1",
    "copies_style": "equal to style",
    "words_of_style": "words of style",
}


@dataclass(frozen=True)
class Measures:
    """Measures of one sentence; those of style are None where there is no style.

    Attributes:
        cosine: Of its embedding and the source's, by the model that scores.
        copies_source: 1 if it is equal to the source, else 0.
        words_of_source: See `word_overlap`; so for the style.
        length: See `length_agreement`, with the style.
        first_mark: 1 if its first mark is the style's, or neither has one, else 0.
        marks: See `mark_agreement`, with the style.
        copies_style: 1 if it is equal to the style, else 0.
        words_of_style: The share of its words that the style has.
    """

    cosine: float
    copies_source: float
    words_of_source: float
    length: float | None = None
    first_mark: float | None = None
    marks: float | None = None
    copies_style: float | None = None
    words_of_style: float | None = None

    def titled(self) -> dict[str, float]:
        """The measures that there are, by the names that tables have for them."""
        return {TITLES[name]: value for name, value in asdict(self).items() if value is not None}


def measure(
    scorer: SentenceTransformer, outputs: Sequence[str], sources: Sequence[str], styles: Sequence[str] | None = None
) -> list[Measures]:
    """Measure N sentences that were written.

    Args:
        scorer: embeds outputs and sources, so of both languages after a translation.
        outputs: N sentences.
        sources: N sentences that have the meaning.
        styles: N sentences that have the style; None where there are none.

    Raises:
        MiningError: a cosine is not finite: the scorer is damaged.
    """
    cosines = [score for score, _, _ in score_pairs(scorer, zip(outputs, sources, strict=True))]
    found = []
    for row, (cosine, output, source) in enumerate(zip(cosines, outputs, sources, strict=True)):
        values = [cosine, float(is_copy(output, source)), word_overlap(output, source)]
        if styles is not None:
            values += _of_style(output, styles[row])
        found.append(Measures(*values))
    return found


def _of_style(output: str, style: str) -> list[float]:
    first = marks(output)[:1] == marks(style)[:1]
    agreements = [length_agreement(output, style), float(first), mark_agreement(output, style)]
    return [*agreements, float(is_copy(output, style)), word_overlap(output, style)]


def words(text: str) -> list[str]:
    """The words of a text, in order."""
    found: list[str] = _WORD.findall(_plain(text))
    return found


def marks(text: str) -> list[str]:
    """The punctuation marks of a text, in order; apostrophes and hyphens inside words are none."""
    found: list[str] = _MARK.findall(_WORD.sub(" ", _plain(text)))
    return found


def length_agreement(output: str, style: str) -> float:
    """The smaller number of words through the larger one; 1 where neither text has a word."""
    counts = sorted((len(words(output)), len(words(style))))
    return counts[0] / counts[1] if counts[1] else 1.0


def mark_agreement(output: str, style: str) -> float:
    """F1 of the marks, each as often as it occurs: twice what both have through what they have; 1 without marks."""
    first, second = Counter(marks(output)), Counter(marks(style))
    every = first.total() + second.total()
    return 2 * (first & second).total() / every if every else 1.0


def word_overlap(output: str, other: str) -> float:
    """The share of the output's words, each as often as it occurs, that the other text has; 0 for none."""
    own = Counter(words(output))
    return (own & Counter(words(other))).total() / own.total() if own else 0.0


def is_copy(output: str, other: str) -> bool:
    """Whether two texts are equal but for case, spaces and forms that NFKC makes one."""
    return _plain(output) == _plain(other)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
